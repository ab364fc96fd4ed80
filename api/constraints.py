"""What an answer must look like: a grammar, where it came from, and how its text becomes a value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..grammar.errors import GrammarError
from ..grammar.grammar import Grammar
from ..grammar.shipped import shipped_grammar, shipped_name

if TYPE_CHECKING:
    from pydantic import BaseModel

Parse = Callable[[str], Any]
Notation = Literal["lark", "gbnf", "ebnf"]


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A grammar of one request.

    Attributes:
        grammar: what the text must be in.
        field: the argument, flag or request field it came from; errors name it.
        parse: complete text -> value; raises ValueError. None where the text is the value.
    """

    grammar: Grammar
    field: str
    parse: Parse | None = None


@dataclass(frozen=True, kw_only=True)
class ParsedAnswer:
    """The value of an answer, or the reason why there is none."""

    value: Any = None
    error: str | None = None


class ConstraintError(ValueError):
    """Several constraints at once, or one that is malformed.

    Attributes:
        fields: the arguments concerned.
    """

    def __init__(self, message: str, fields: tuple[str, ...]):
        self.fields = fields
        super().__init__(message)


def the_only(candidates: Sequence[tuple[str, Callable[[], Constraint]]]) -> Constraint | None:
    """The constraint among `(field, build)` pairs, built; None if there is none.

    Raises:
        ConstraintError: if there is more than one; the message names all of them.
        GrammarError: if it cannot be enforced.
    """
    if len(candidates) > 1:
        fields = tuple(field for field, _ in candidates)
        raise ConstraintError(f"only one constraint can be given, not {' and '.join(map(repr, fields))}", fields)
    return candidates[0][1]() if candidates else None


def from_arguments(
    *,
    schema: dict[str, Any] | str | bool | type[BaseModel] | None = None,
    regex: str | None = None,
    choice: Sequence[str] | None = None,
    grammar: Grammar | str | None = None,
    output_type: Any = None,
    structural_tag: Any = None,
) -> Constraint | None:
    """The constraint of a Python call; see `LLM.generate`."""
    builders: tuple[tuple[str, Any, Callable[[], Constraint]], ...] = (
        ("schema", schema, lambda: of_schema(schema, field="schema")),
        ("regex", regex, lambda: of_regex(str(regex), field="regex")),
        ("choice", choice, lambda: of_choice(choice or (), field="choice")),
        ("grammar", grammar, lambda: _of_grammar_or_name(grammar)),
        ("output_type", output_type, lambda: of_type(output_type, field="output_type")),
        ("structural_tag", structural_tag, lambda: of_structural_tag(structural_tag, field="structural_tag")),
    )
    return the_only([(field, build) for field, given, build in builders if given is not None])


def of_schema(schema: Any, *, field: str, **options: Any) -> Constraint:
    """A JSON Schema: a dict, a bool, JSON text, or a Pydantic model class (then `parse` gives an instance)."""
    parse = schema.model_validate_json if _is_model_class(schema) else json.loads
    return Constraint(grammar=Grammar.json_schema(schema, **options), field=field, parse=parse)


def of_json_object(*, field: str) -> Constraint:
    return Constraint(grammar=Grammar.json_object(), field=field, parse=json.loads)


def of_regex(pattern: str, *, field: str) -> Constraint:
    return Constraint(grammar=Grammar.regex(pattern), field=field)


def of_choice(choices: Sequence[str], *, field: str) -> Constraint:
    if isinstance(choices, str):
        raise ConstraintError(f"'{field}' must be a list of texts, not one text", (field,))
    return Constraint(grammar=Grammar.choice(list(choices)), field=field, parse=str)


def of_grammar(notation: Notation, text: str, *, field: str, start: str | None = None) -> Constraint:
    """A context-free grammar.

    Args:
        text: the grammar, or the name of a shipped one, whatever its notation.
        start: the rule to start with; None is `start` in Lark, `root` in the others.

    Raises:
        GrammarError: with the position, and with line and column if the text has several lines.
    """
    name = shipped_name(text)
    kind, text = (notation, text) if name is None else shipped_grammar(name)
    read = {"lark": Grammar.lark, "gbnf": Grammar.gbnf, "ebnf": Grammar.ebnf}[kind]
    return Constraint(grammar=read(text) if start is None else read(text, start), field=field)


def of_structural_tag(spec: Any, *, field: str) -> Constraint:
    """A structural tag: a tree of nodes, or its JSON form as a value or as text."""
    return Constraint(grammar=Grammar.structural_tag(spec), field=field)


def of_type(output_type: Any, *, field: str) -> Constraint:
    """A Python type: the answer is JSON and `parse` gives a value of the type."""
    from pydantic import TypeAdapter

    return Constraint(grammar=Grammar.of(output_type), field=field, parse=TypeAdapter(output_type).validate_json)


def parse_answer(constraint: Constraint | None, text: str, finish_reason: str | None) -> ParsedAnswer:
    """The value of a finished answer.

    An answer that was cut at its token budget may still look like JSON (`1` of `12`), so the grammar has the last word.
    """
    if constraint is None or constraint.parse is None:
        return ParsedAnswer()
    if finish_reason != "stop" and not constraint.grammar.accepts(text):
        return ParsedAnswer(error=f"the answer is incomplete: it ended with finish_reason '{finish_reason}'")
    try:
        return ParsedAnswer(value=constraint.parse(text))
    except (ValueError, RecursionError) as error:
        return ParsedAnswer(error=f"the answer does not parse: {error}")


def raise_refusal(error: Exception | None) -> None:
    """Raise the error of a request whose constraint could not be enforced; other errors stay with their answer."""
    if isinstance(error, GrammarError):
        raise error


def _is_model_class(schema: Any) -> bool:
    return isinstance(schema, type) and hasattr(schema, "model_validate_json")


def _of_grammar_or_name(given: Any) -> Constraint:
    if shipped_name(given) is not None:
        return of_grammar("lark", given, field="grammar")
    if not isinstance(given, Grammar):
        raise ConstraintError(f"'grammar' must be a Grammar or the name of a shipped one, not {type(given).__name__}", ("grammar",))
    return Constraint(grammar=given, field="grammar")
