"""The Jinja environment of chat templates: transformers' conventions, sandboxed and metered.

Compiled templates reach every operation through this environment. Calls, subscripts and arithmetic pass the hooks of
Jinja's sandbox; loops, comparisons, concatenation and output are rewritten in the syntax tree to pass a filter.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, cast

from jinja2 import Template, nodes, pass_context
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from ..errors import ChatTemplateError
from .template_budget import current_budget

_FREE_TEXT_CHARS = 64  # static text this short is covered by the step of the loop pass that prints it
_DROPPED_FILTERS = ("urlize", "pprint", "xmlattr", "random")
_DROPPED_GLOBALS = ("lipsum",)


class GenerationExtension(Extension):
    """`{% generation %}...{% endgeneration %}`, which marks the assistant's text for training: here, just its body."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatEnvironment(ImmutableSandboxedEnvironment):
    """A sandbox whose operations draw on the budget of the rendering in progress."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", GenerationExtension])
        for name in _DROPPED_FILTERS:
            del self.filters[name]
        for name in _DROPPED_GLOBALS:
            del self.globals[name]
        self.filters["tojson"] = _to_json
        self.filters = {name: _metered(name, function) for name, function in self.filters.items()}
        self.filters |= {_SPEND: _spend, _PRINT: _print, _LOOP: _loop}
        self.globals |= {"range": _range, "raise_exception": _raise_exception, "strftime_now": _strftime_now}

    def compile_chat_template(self, source: str) -> Template:
        """A template whose operations are metered. Raises Jinja's `TemplateError`, or what Python's compiler raises."""
        tree = _Meter().visit(self.parse(source))
        return Template.from_code(self, self.compile(tree), self.globals)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        method = getattr(obj, "__wrapped__", obj)  # the sandbox wraps `str.format`
        owner = getattr(method, "__self__", None)
        if isinstance(owner, str):
            _check_growth(method.__name__, owner, [*args, *kwargs.values()])
        return current_budget().spend(super().call(context, obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "*":
            _check_product(left, right)
        elif operator == "**":
            _check_power(left, right)
        elif operator == "%" and isinstance(left, str):
            _check_growth("format", left, [right])
        return current_budget().spend(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        value = super().getitem(obj, argument)
        return current_budget().spend(value) if isinstance(argument, slice) else value


# ------------------------------------------------------------------------------------------ the syntax tree's hooks

_SPEND = "_spend"
_PRINT = "_print"
_LOOP = "_loop"


@pass_context  # a context filter is never evaluated at compile time, where there is no budget
def _spend(context: Context, value: Any) -> Any:
    return current_budget().spend(value)


@pass_context
def _print(context: Context, value: Any) -> Any:
    return current_budget().print(value)


@pass_context
def _loop(context: Context, value: Any) -> Any:
    return current_budget().loop(value)


def _through(name: str, node: nodes.Node) -> nodes.Expr:
    return nodes.Filter(cast(nodes.Expr, node), name, [], [], None, None, lineno=node.lineno)


class _Meter(NodeTransformer):
    """Puts loops, comparisons, concatenation and output through the budget."""

    def visit_For(self, node: nodes.For) -> nodes.For:
        self.generic_visit(node)
        node.iter = _through(_LOOP, node.iter)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:
        self.generic_visit(node)
        node.nodes = [_through(_PRINT, part) for part in node.nodes]
        return _through(_SPEND, node)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:
        self.generic_visit(node)
        node.expr = _through(_SPEND, node.expr)
        for operand in node.ops:
            operand.expr = _through(_SPEND, operand.expr)
        return node

    def visit_Output(self, node: nodes.Output) -> nodes.Output:
        self.generic_visit(node)
        node.nodes = [self._output(part) for part in node.nodes]
        return node

    def _output(self, part: nodes.Expr) -> nodes.Expr:
        if not isinstance(part, nodes.TemplateData):
            return _through(_PRINT, part)
        if len(part.data) <= _FREE_TEXT_CHARS:
            return part
        return _through(_PRINT, nodes.Const(part.data, lineno=part.lineno))


# ----------------------------------------------------------------------------------------------- filters and globals


def _metered(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose arguments and result draw on the budget."""
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)  # keeps the marks of Jinja's `pass_*` decorators
    def metered(*args: Any, **kwargs: Any) -> Any:
        _check_growth(name, args[first], [*args[first + 1 :], *kwargs.values()])
        return current_budget().spend(function(*args, **kwargs))

    return metered


# The largest number that filters and string methods take where it states a width, a count or a precision.
_WIDTH_CEILING = {
    **dict.fromkeys(("batch", "center", "expandtabs", "indent", "ljust", "rjust", "slice", "tojson", "wordwrap", "zfill"), 10_000),
    "round": 300,
}


def _check_growth(name: str, value: Any, arguments: list[Any]) -> None:
    """Account for what a filter or a string method reads, and for the text it makes of it, before it does."""
    budget = current_budget()
    budget.print(value)
    for argument in arguments:
        budget.print(argument)
    if name in _WIDTH_CEILING:
        budget.widths(arguments, _WIDTH_CEILING[name])
    if name in ("format", "format_map"):
        budget.format(value)
    elif name == "replace":
        _check_replacement(value, arguments)
    elif name == "join":
        _check_join(value, arguments)
    elif name in ("expandtabs", "indent"):
        widths = [argument for argument in arguments if isinstance(argument, int)]
        lines_or_tabs = value.count("\n") + value.count("\t") if isinstance(value, str) else 0
        budget.work(lines_or_tabs * max([8, *widths]))


def _check_replacement(text: Any, arguments: list[Any]) -> None:
    if len(arguments) >= 2 and all(isinstance(part, str) for part in (text, *arguments[:2])):
        old, new = arguments[:2]
        current_budget().work(text.count(old) * len(new))


def _check_join(value: Any, arguments: list[Any]) -> None:
    """`glue.join(parts)` and `parts | join(glue)`; the parts themselves are accounted for already."""
    glue, parts = (value, arguments[0]) if isinstance(value, str) and arguments else (next(iter(arguments), ""), value)
    if isinstance(parts, (str, list, tuple)):
        current_budget().work(len(parts) * len(str(glue)))


def _check_product(left: Any, right: Any) -> None:
    for sequence, count in ((left, right), (right, left)):
        if isinstance(sequence, (str, list, tuple)) and isinstance(count, int):
            current_budget().work(len(sequence) * max(count, 0))


def _check_power(base: Any, exponent: Any) -> None:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * max(exponent, 0) > 64:
        raise ChatTemplateError("the chat template computes with numbers that are too large")


def _range(*bounds: int) -> range:
    values = range(*bounds)
    current_budget().step(len(values))
    return values


def _to_json(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
    # Jinja's own filter escapes HTML characters, which prompts do not want.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> None:
    raise ChatTemplateError(f"the chat template refused the messages: {message}")


def _strftime_now(layout: str) -> str:
    current_budget().format(layout)
    return datetime.now().strftime(layout)
