"""All formats, and which one a model uses."""

from __future__ import annotations

from ...grammar.structural_tag import Token
from ...grammar.structural_tag.spec import joined
from .cohere import Cohere
from .format import FramedFormat, ToolFormat
from .gemma import GemmaCalls
from .harmony import Harmony
from .headed_formats import DeepSeekV3, DeepSeekV31, KimiK2, MistralCalls
from .json_formats import FunctionTag, JsonSection, KeyedJson, Llama3Json, PlainJson, WrappedJson
from .names import ALIASES
from .parameter_formats import ParameterCalls, ParameterSection
from .pythonic import Llama4Pythonic, Pythonic, PythonicSection
from .tool import ToolError

_TOOL_CALLS = Token(token="[TOOL_CALLS]")
_DSML = "\uff5cDSML\uff5c"
_GIGACHAT = (Token(token="<|message_sep|>"), "\n\nfunction call", Token(token="<|role_sep|>"), "\n")

_ALL: tuple[ToolFormat, ...] = (
    WrappedJson(name="hermes", trigger="<tool_call>", before="<tool_call>\n", after="\n</tool_call>"),
    Llama3Json(),
    Pythonic(),
    Llama4Pythonic(),
    JsonSection(name="mistral", begin=_TOOL_CALLS, opening="[", closing="]"),
    MistralCalls(name="mistral_v11", with_id=True),
    MistralCalls(name="mistral_v13", with_id=False),
    ParameterCalls(
        name="qwen3_coder",
        trigger="<tool_call>",
        style="qwen_xml",
        before="<tool_call>\n<function=",
        after=">",
        last="</function>\n</tool_call>",
    ),
    ParameterCalls(name="glm45", trigger="<tool_call>", style="glm_xml", before="<tool_call>", after="", last="</tool_call>"),
    ParameterCalls(
        name="seed_oss",
        trigger="<seed:tool_call>",
        style="qwen_xml",
        before="<seed:tool_call>\n<function=",
        after=">",
        last="</function>\n</seed:tool_call>",
    ),
    ParameterSection(
        name="minimax_m2",
        begin="<minimax:tool_call>\n",
        end="\n</minimax:tool_call>",
        style="minimax_xml",
        before='<invoke name="',
        after='">',
        last="</invoke>",
    ),
    ParameterSection(
        name="deepseek_v32",
        begin=f"<{_DSML}function_calls>\n",
        end=f"\n</{_DSML}function_calls>",
        style="deepseek_xml",
        before=f'<{_DSML}invoke name="',
        after='">',
        last=f"</{_DSML}invoke>",
    ),
    ParameterSection(
        name="deepseek_v4",
        begin=f"<{_DSML}tool_calls>\n",
        end=f"\n</{_DSML}tool_calls>",
        style="deepseek_xml",
        before=f'<{_DSML}invoke name="',
        after='">',
        last=f"</{_DSML}invoke>",
    ),
    ParameterSection(
        name="step3",
        begin=joined(Token(token="<\uff5ctool_calls_begin\uff5c>"), "\n"),
        end=joined("\n", Token(token="<\uff5ctool_calls_end\uff5c>")),
        style="step_xml",
        before=joined(
            Token(token="<\uff5ctool_call_begin\uff5c>"), "function", Token(token="<\uff5ctool_sep\uff5c>"), '<steptml:invoke name="'
        ),
        after='">',
        last=joined("</steptml:invoke>", Token(token="<\uff5ctool_call_end\uff5c>")),
    ),
    ParameterSection(
        name="hy_v3",
        begin="<tool_calls>\n",
        end="\n</tool_calls>",
        style="glm_xml",
        before="<tool_call>",
        after="<tool_sep>",
        last="</tool_call>",
    ),
    ParameterCalls(
        name="minicpm5", trigger="<function name=", style="minicpm_xml", before='<function name="', after='">', last="</function>"
    ),
    ParameterCalls(
        name="solar_open2",
        trigger=Token(token="<|tool_call:start|>"),
        style="solar",
        before=Token(token="<|tool_call:start|>"),
        after="",
        last=Token(token="<|tool_call:end|>"),
    ),
    WrappedJson(name="gigachat3", trigger=_GIGACHAT, before=_GIGACHAT, after="", separator=""),
    WrappedJson(
        name="gigachat31", trigger=Token(token="<|function_call|>"), before=Token(token="<|function_call|>"), after="", separator=""
    ),
    KeyedJson(),
    GemmaCalls(name="gemma4", trigger=Token(token="<|tool_call>"), end=Token(token="<tool_call|>"), bare_style="gemma"),
    GemmaCalls(
        name="functiongemma",
        trigger=Token(token="<start_function_call>"),
        end=Token(token="<end_function_call>"),
        bare_style="functiongemma",
    ),
    Cohere(name="cohere_command3", content_begin=Token(token="<|START_RESPONSE|>"), content_end=Token(token="<|END_RESPONSE|>")),
    Cohere(name="cohere_command4", content_begin=Token(token="<|START_TEXT|>"), content_end=Token(token="<|END_TEXT|>")),
    DeepSeekV3(),
    DeepSeekV31(),
    KimiK2(),
    JsonSection(name="granite", begin=Token(token="<|tool_call|>"), opening="[", closing="]"),
    JsonSection(name="hunyuan_a13b", begin="<tool_calls>[", end="]</tool_calls>"),
    JsonSection(name="minimax", begin="<tool_calls>\n", end="\n</tool_calls>", separator="\n"),
    JsonSection(name="nemotron_json", begin="<TOOLCALL>[", end="]</TOOLCALL>"),
    JsonSection(name="phi4_mini_json", begin="functools[", end="]"),
    JsonSection(
        name="internlm",
        begin=Token(token="<|action_start|>"),
        opening="<|plugin|>\n",
        end=Token(token="<|action_end|>"),
        key="parameters",
    ),
    WrappedJson(name="longcat", trigger="<longcat_tool_call>", before="<longcat_tool_call>\n", after="\n</longcat_tool_call>"),
    WrappedJson(name="granite-20b-fc", trigger="<function_call>", before="<function_call> ", after=""),
    PythonicSection(name="olmo3", begin="<function_calls>", end="</function_calls>", separator="\n"),
    PythonicSection(
        name="lfm2",
        begin=Token(token="<|tool_call_start|>"),
        end=Token(token="<|tool_call_end|>"),
        opening="[",
        closing="]",
    ),
    Harmony(),
    FunctionTag(),
    PlainJson(),
)
FORMATS: dict[str, ToolFormat] = {tool_format.name: tool_format for tool_format in _ALL}

# What only the chat templates of a format hold, most telling first. Some need two signs.
_SIGNS = (
    (("<|channel|>analysis<|message|>",), "harmony"),
    (("[TOOL_CALLS]", "[CALL_ID]"), "mistral_v11"),
    (("[TOOL_CALLS]", "[ARGS]"), "mistral_v13"),
    (("[TOOL_CALLS]",), "mistral"),
    ((f"{_DSML}tool_calls>",), "deepseek_v4"),
    ((_DSML,), "deepseek_v32"),
    (("<|START_ACTION|>", "<|START_TEXT|>"), "cohere_command4"),
    (("<|START_ACTION|>", "<|START_RESPONSE|>"), "cohere_command3"),
    (("<steptml:invoke",), "step3"),
    (("<tool_sep>",), "hy_v3"),
    (("<function name=", "<param name="), "minicpm5"),
    (("<|tool_arg:start|>",), "solar_open2"),
    (("<|message_sep|>", "function call"), "gigachat3"),
    (("<|function_call|>",), "gigachat31"),
    (("<|tools_prefix|>",), "apertus"),
    (("<|tool_call>call:",), "gemma4"),
    (("<start_function_call>",), "functiongemma"),
    (("<\uff5ctool\u2581sep\uff5c>", "```json"), "deepseek_v3"),
    (("<\uff5ctool\u2581sep\uff5c>",), "deepseek_v31"),
    (("<|tool_call_argument_begin|>",), "kimi_k2"),
    (("<minimax:tool_call>",), "minimax_m2"),
    (("<seed:tool_call>",), "seed_oss"),
    (("<longcat_tool_call>",), "longcat"),
    (("<arg_key>",), "glm45"),
    (("<function=", "<parameter="), "qwen3_coder"),
    (("<|tool_call_start|>",), "lfm2"),
    (("<|tool_call|>",), "granite"),
    (("<|action_start|>",), "internlm"),
    (("<TOOLCALL>",), "nemotron_json"),
    (("<function_calls>",), "olmo3"),
    (("<function_call>",), "granite-20b-fc"),
    (("<tool_calls>[",), "hunyuan_a13b"),
    (("<tool_calls>",), "minimax"),
    (("<tool_call>",), "hermes"),
    (("functools[",), "phi4_mini_json"),
    (("<|tool|>",), "phi4_mini_json"),
    (("<function=",), "function"),
    (("<|python_start|>", "func_name1("), "llama4_pythonic"),
    (("func_name1(",), "pythonic"),
    (('"parameters": ',), "llama3_json"),
    (("<|python_tag|>",), "llama3_json"),
)


def format_named(name: str, template: str | None = None) -> ToolFormat:
    """The format of a name.

    Args:
        template: source of the model's chat template: it tells which of Mistral's formats `mistral` is.

    Raises:
        ToolError: there is none.
    """
    if name == "mistral" and template is not None and (found := _format_by_signs(template)) is not None and "mistral" in found.name:
        return found
    known = ALIASES.get(name, name)
    if known not in FORMATS:
        raise ToolError(f"there is no tool call format {name[:80]!r}; there is {', '.join(FORMATS)}", field="tool_call_format")
    return FORMATS[known]


def format_of_template(source: str | None) -> ToolFormat:
    """The format that a chat template uses; JSON objects where it knows no tools."""
    found = _format_by_signs(source or "")
    return found if isinstance(found, FramedFormat) or (found is not None and knows_tools(source or "")) else FORMATS["json"]


def _format_by_signs(source: str) -> ToolFormat | None:
    return next((FORMATS[name] for signs, name in _SIGNS if all(sign in source for sign in signs)), None)


def knows_tools(source: str) -> bool:
    """Whether a chat template tells a model about its tools."""
    return "tools" in source
