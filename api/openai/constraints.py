"""The constraint of a request body, whichever of the accepted spellings it uses."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...grammar.errors import GrammarError, LimitError
from ...grammar.shipped import shipped_name, shipped_schema
from .. import constraints
from ..constraints import Constraint, ConstraintError, Notation
from .errors import ApiError, bad_request
from .protocol import GenerationBody, ResponseFormat, StructuredOutputs
from .responses_body import ResponsesBody, TextFormat
from .strict_schema import violations

Candidate = tuple[str, Callable[[], Constraint]]

_JSON_OPTIONS = ("whitespace_pattern", "disable_any_whitespace", "property_order")  # of `StructuredOutputs`
_WHITESPACE_WORDS = ("bounded", "compact", "any")
_BNF_RULE = re.compile(r"^[ \t]*[\w.-]+\s*::=", re.MULTILINE)
_FORMAT_FIELDS = {
    "grammar": "grammar",
    "regex": "regex",
    "choice": "choice",
    "format": "structural_tag",
    "structures": "structural_tag",
    "triggers": "structural_tag",
}  # fields by the type that they go with
_TEXT_FORMAT_FIELDS = {"schema_": "json_schema", "strict": "json_schema", "grammar": "grammar", "regex": "regex", "choice": "choice"}


def from_body(body: GenerationBody) -> Constraint | None:
    """The one constraint of the body, or None.

    Raises:
        ApiError: 400, if several are given (the message names them), or if one is empty or cannot be enforced.
    """
    candidates = [
        *_response_format(body.response_format),
        *_structured_outputs(body.structured_outputs),
        *_guided(body),
        *_top_level(body),
    ]
    return the_only(candidates)


def from_responses_body(body: ResponsesBody) -> Constraint | None:
    """The same for a body of `/v1/responses`."""
    given = body.text.format if body.text else None
    return the_only([*_text_format(given), *_structured_outputs(body.structured_outputs)])


def the_only(candidates: list[Candidate]) -> Constraint | None:
    """The constraint among candidates, built.

    Raises:
        ApiError: 400, see `from_body`.
    """
    try:
        return constraints.the_only(candidates)
    except ConstraintError as error:
        raise bad_request(str(error), param=error.fields[-1], code="conflicting_constraints") from None
    except GrammarError as error:
        raise refused(error, field=candidates[0][0]) from None


def refused(error: GrammarError, *, field: str) -> ApiError:
    """The answer to a constraint that cannot be enforced: `param` is the field, the message holds the place inside it."""
    code = "grammar_too_large" if isinstance(error, LimitError) else "invalid_grammar"
    return bad_request(f"'{field}' cannot be enforced: {error}", param=field, code=code)


def _response_format(given: ResponseFormat | None) -> list[Candidate]:
    if given is None:
        return []
    for field, kind in _FORMAT_FIELDS.items():
        if given.type != kind and getattr(given, field) is not None:
            raise bad_request(f"'{field}' does not go with type '{given.type}'", param=f"response_format.{field}")
    if given.type == "structural_tag":
        return [_structural_tag_format(given)]
    if given.schema_ is not None:
        return [_bare_schema(given)]
    if given.type != "json_schema" and given.json_schema is not None:
        raise bad_request(f"'json_schema' does not go with type '{given.type}'", param="response_format.json_schema")
    schema, strict = (given.json_schema.schema_, given.json_schema.strict) if given.json_schema else (None, None)
    return _format(given, "response_format", "response_format.json_schema.schema", schema, bool(strict))


def _bare_schema(given: ResponseFormat) -> Candidate:
    """As llama.cpp has it: the schema without an object around it."""
    field = "response_format.schema"
    if given.type not in ("json_object", "json_schema"):
        raise bad_request(f"'schema' does not go with type '{given.type}'", param=field)
    if given.json_schema is not None:
        raise bad_request("'schema' and 'json_schema' are two schemas", param=field, code="conflicting_constraints")
    return _json_schema_format(field, given.schema_, strict=False)


def _structural_tag_format(given: ResponseFormat) -> Candidate:
    """The fields are those of the structural tag itself, so that its pointers are those of the field."""
    spec = given.model_dump(include={"type", "format", "structures", "triggers"}, exclude_none=True)
    return "response_format", lambda: constraints.of_structural_tag(spec, field="response_format")


def _text_format(given: TextFormat | None) -> list[Candidate]:
    if given is None:
        return []
    for field, kind in _TEXT_FORMAT_FIELDS.items():
        if given.type != kind and getattr(given, field) is not None:
            shown = field.rstrip("_")
            raise bad_request(f"'{shown}' does not go with type '{given.type}'", param=f"text.format.{shown}")
    return _format(given, "text.format", "text.format.schema", given.schema_, bool(given.strict))


def _format(given: ResponseFormat | TextFormat, place: str, schema_field: str, schema: Any, strict: bool) -> list[Candidate]:
    if given.type == "text":
        return []
    if given.type == "json_object":
        return [_json_object(place, {})]
    if given.type == "json_schema":
        return [_json_schema_format(schema_field, schema, strict)]
    found = _candidates(f"{place}.", None, given.regex, given.choice, given.grammar, {})
    if not found:
        field = f"{place}.{given.type}"
        raise bad_request(f"type '{given.type}' needs '{field}'", param=field, code="missing_value")
    return found


def _json_schema_format(field: str, schema: Any, strict: bool) -> Candidate:
    if schema is None:
        raise bad_request(f"type 'json_schema' needs '{field}'", param=field, code="missing_value")
    name = shipped_name(schema)
    if isinstance(schema, str) and name is None:
        raise bad_request(f"'{field}' must be an object, or the name of a shipped schema", param=field)
    return field, lambda: _strict_or_not(field, schema if name is None else shipped_schema(name), strict)


def _strict_or_not(field: str, schema: Any, strict: bool) -> Constraint:
    """A schema that cannot be enforced at all is refused for that, before its strictness is looked at."""
    constraint = _json_schema(field, schema, {})[1]()
    violation = next(violations(schema), None) if strict else None
    if violation is not None:
        message = f"'{field}' does not keep the rules of 'strict': {violation}; leave 'strict' out to have it enforced as it is"
        raise bad_request(message, param=field, code="invalid_json_schema")
    return constraint


def _structured_outputs(given: StructuredOutputs | None) -> list[Candidate]:
    if given is None:
        return []
    compact = bool(given.disable_any_whitespace)
    options = _whitespace(given.whitespace_pattern, compact=compact, field="structured_outputs.whitespace_pattern")
    if given.property_order is not None:
        options["property_order"] = given.property_order
    found = _candidates("structured_outputs.", given.json_, given.regex, given.choice, given.grammar, options)
    if given.json_object:
        found.append(_json_object("structured_outputs.json_object", options))
    if given.structural_tag is not None:
        spec, field = given.structural_tag, "structured_outputs.structural_tag"
        found.append((field, lambda: constraints.of_structural_tag(spec, field=field)))
    if not found:
        raise bad_request("'structured_outputs' holds no constraint", param="structured_outputs", code="missing_value")
    if options and given.json_ is None and not given.json_object:
        field = next(field for field in _JSON_OPTIONS if getattr(given, field))
        raise bad_request(f"'{field}' goes with 'json' or 'json_object'", param=f"structured_outputs.{field}")
    return found


def _guided(body: GenerationBody) -> list[Candidate]:
    options = _whitespace(body.guided_whitespace_pattern, compact=False, field="guided_whitespace_pattern")
    if options and body.guided_json is None:
        raise bad_request("'guided_whitespace_pattern' goes with 'guided_json'", param="guided_whitespace_pattern")
    return _candidates("guided_", body.guided_json, body.guided_regex, body.guided_choice, body.guided_grammar, options)


def _top_level(body: GenerationBody) -> list[Candidate]:
    found = _candidates("", None, body.regex, None, None, {})
    if body.json_schema is not None:
        found.append(_json_schema("json_schema", body.json_schema, {}))
    if body.grammar is not None:
        found.append(_grammar("grammar", body.grammar, "gbnf"))
    if body.ebnf is not None:
        found.append(_grammar("ebnf", body.ebnf, "ebnf"))
    return found


def _candidates(
    prefix: str, schema: Any, regex: str | None, choice: list[str] | None, grammar: str | None, options: dict[str, Any]
) -> list[Candidate]:
    found: list[Candidate] = []
    if schema is not None:
        found.append(_json_schema(prefix + "json", schema, options))
    if regex is not None:
        found.append((prefix + "regex", lambda: constraints.of_regex(regex, field=prefix + "regex")))
    if choice is not None:
        found.append((prefix + "choice", lambda: constraints.of_choice(choice, field=prefix + "choice")))
    if grammar is not None:
        found.append(_grammar(prefix + "grammar", grammar, _notation_of(grammar)))
    return found


def _grammar(field: str, text: str, notation: Notation) -> Candidate:
    return field, lambda: constraints.of_grammar(notation, text, field=field)


def _notation_of(text: str) -> Notation:
    """vLLM takes two notations in one field. A line that begins a rule with `name ::=` is in no Lark grammar."""
    return "ebnf" if _BNF_RULE.search(text) else "lark"


def _json_schema(field: str, schema: Any, options: dict[str, Any]) -> Candidate:
    if not isinstance(schema, (dict, bool, str)):
        raise bad_request(f"'{field}' must be a JSON Schema: an object or a boolean", param=field)
    return field, lambda: constraints.of_schema(schema, field=field, **options)


def _json_object(field: str, options: dict[str, Any]) -> Candidate:
    if options:
        return field, lambda: constraints.of_schema({"type": "object"}, field=field, **options)
    return field, lambda: constraints.of_json_object(field=field)


def _whitespace(pattern: str | None, *, compact: bool, field: str) -> dict[str, Any]:
    """Options of `Grammar.json_schema`; a pattern that reads like one of its words is still a pattern."""
    if pattern is None:
        return {"whitespace": "compact"} if compact else {}
    if compact:
        raise bad_request(f"'{field}' does not go with 'disable_any_whitespace'", param=field, code="conflicting_constraints")
    return {"whitespace": f"(?:{pattern})" if pattern in _WHITESPACE_WORDS else pattern}
