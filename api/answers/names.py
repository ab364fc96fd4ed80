"""What `--reasoning-parser` takes: names of formats, and what other servers call them."""

from __future__ import annotations

REASONING_NAMES = (
    "qwen3",
    "deepseek_r1",
    "deepseek_v3",
    "glm45",
    "mistral",
    "seed_oss",
    "gemma4",
    "granite",
    "kimi",
    "minimax_m3",
    "cohere_command3",
    "cohere_command4",
    "openai_gptoss",
)
ALIASES = {
    "deepseek-r1": "deepseek_r1",
    "deepseek-v3": "deepseek_v3",
    "deepseek_v4": "deepseek_v3",
    "ernie45": "qwen3",
    "glm47": "glm45",
    "gpt-oss": "openai_gptoss",
    "harmony": "openai_gptoss",
    "holo2": "qwen3",
    "hy_v3": "qwen3",
    "interns1": "qwen3",
    "kimi_k2": "qwen3",
    "mimo": "qwen3",
    "minimax": "qwen3",
    "minimax_m2": "qwen3",
    "nemotron_v3": "qwen3",
    "olmo3": "qwen3",
    "poolside_v1": "qwen3",
    "qwen3-thinking": "qwen3",
    "step3": "qwen3",
    "step3p5": "qwen3",
}
