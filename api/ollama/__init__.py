"""Ollama's protocol (https://github.com/ollama/ollama/blob/main/docs/api.md). Knows nothing of HTTP."""
