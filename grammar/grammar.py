"""`Grammar`: one constraint, checked and ready to be compiled against a vocabulary."""

from __future__ import annotations

import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from . import json_text
from .collector import RELAXED
from .diagnosis import Failure, diagnose
from .errors import GrammarError, LimitError
from .json_schema.check import Finding, raise_refused
from .json_schema.compile import check_schema, compile_schema
from .json_schema.document import Document, draft_of
from .json_schema.expand import Expander
from .json_schema.pointers import Pointer
from .limits import Limits
from .machine import Machine, leaf_row
from .machine_layout import DEAD
from .regex import Language
from .shipped import grammar_text, shipped_name, shipped_schema
from .whitespace import Whitespace

if TYPE_CHECKING:
    from .structural_tag.grammar import TagGrammar

Json = Any


@dataclass(frozen=True)
class Compiled:
    """A byte automaton and the state before any text."""

    machine: Machine
    start: int


# With the budgets, and ids by name of the special tokens of the vocabulary that it is for, if there is one.
Build = Callable[[Limits, Mapping[str, int | None] | None], Compiled]


class Grammar:
    """A constraint on text. Make one with the constructors below; each checks its input and raises `GrammarError` for
    whatever cannot be enforced exactly.

    Attributes:
        kind: "json_schema", "regex", "choice", "lark", "gbnf", "ebnf" or "structural_tag".
        key: text that is equal for grammars of equal meaning and options; caches are keyed by it.
    """

    def __init__(self, kind: str, key: str | Callable[[], str], build: Build, findings: Callable[[], list[Finding]] | None = None):
        self.kind = kind
        self._key = key
        self._build = build
        self._findings = findings
        self._own: Compiled | None = None
        self._lock = threading.Lock()

    @cached_property
    def key(self) -> str:
        return self._key if isinstance(self._key, str) else self._key()

    def __repr__(self) -> str:
        text = self.key if len(self.key) <= 80 else self.key[:77] + "..."
        return f"Grammar({text})"

    # --- constructors ----------------------------------------------------------------------------------------------

    @staticmethod
    def json_schema(
        schema: Mapping[str, Json] | str | bool | type,
        *,
        whitespace: str = "bounded",
        property_order: str = "schema",
        separators: tuple[str, str] | None = None,
        draft: str | None = None,
        registry: Mapping[str, Json] | None = None,
        limits: Limits | None = None,
    ) -> Grammar:
        """JSON documents that a JSON Schema admits.

        Args:
            schema: the schema as a mapping, a boolean, JSON text, the name of a shipped one (`formcast:invoice`), or a Pydantic model
                class. The objects of a model have no members beyond their fields unless the model says `extra="allow"`.
            whitespace: "bounded" (at most one space, or a newline and 40 blanks), "compact", "any", or a regex.
            property_order: "schema" is best for models: required properties keep the order of `properties` (or that of `required`
                where `properties` is alphabetical), members that the schema does not speak of wait for them, optional ones come
                anywhere, and what the schema knows is spelt plainly (keys, enums and patterned strings do not escape printable
                ASCII, integers have no exponent). "any" allows every order and every legal spelling.
            separators: exact item and key separators as in `json.dumps`; replaces the whitespace policy.
            draft: "4", "6", "7", "2019-09" or "2020-12"; default by `$schema`.
            registry: schemas by absolute URI that references may lead to.
            limits: budgets for the check.

        Raises:
            GrammarError: with the JSON pointer of what is malformed, unsupported or contradictory.
        """
        with RELAXED:
            return Grammar._of_schema(schema, whitespace, property_order, separators, draft, registry, limits or Limits())

    @staticmethod
    def _of_schema(
        schema: Mapping[str, Json] | str | bool | type,
        whitespace: str,
        property_order: str,
        separators: tuple[str, str] | None,
        draft: str | None,
        registry: Mapping[str, Json] | None,
        limits: Limits,
    ) -> Grammar:
        if property_order not in ("schema", "any"):
            raise GrammarError(f"property_order must be 'schema' or 'any', not {property_order!r}")
        name = shipped_name(schema)
        text, root = _load_schema(schema if name is None else shipped_schema(name), limits)
        documents = _load_registry(registry)
        document = Document(root, draft_of(root, draft), documents)
        expander = Expander(document, limits)
        raise_refused(check_schema(expander, only_refused=True))
        spaces = Whitespace.policy(whitespace, _separators(separators), limits)
        any_order = property_order == "any"
        warm = {limits: expander}  # the first automaton starts from what the check has expanded

        def build(limits: Limits, _tokens: object) -> Compiled:
            expander = warm.pop(limits, None) or Expander(document, limits)
            return Compiled(*compile_schema(expander, spaces, any_order=any_order))

        def key() -> str:
            return json.dumps(["json_schema", text, whitespace, property_order, separators, draft, json_text.dumps(documents)])

        return Grammar("json_schema", key, build, lambda: list(check_schema(Expander(document, limits))))

    @staticmethod
    def json_object(*, whitespace: str = "bounded") -> Grammar:
        """Any JSON object."""
        return Grammar.json_schema({"type": "object"}, whitespace=whitespace)

    @staticmethod
    def regex(pattern: str, dialect: Literal["ecma", "python"] = "ecma") -> Grammar:
        """Texts that match `pattern` from beginning to end.

        Args:
            pattern: the regular expression.
            dialect: "ecma" (ECMA-262 with the `u` flag) or "python" (`re`).

        Raises:
            GrammarError: with the position of what is malformed or unsupported, or when nothing matches.
        """
        if not isinstance(pattern, str):
            raise GrammarError(f"a regex must be text, not {type(pattern).__name__}")
        if dialect not in ("ecma", "python"):
            raise GrammarError(f"the dialect must be 'ecma' or 'python', not {dialect!r}")
        try:
            language = Language.pattern(pattern, dialect, "full")
        except GrammarError as error:
            raise error.within(pattern) from None
        return Grammar._of_language("regex", json.dumps(["regex", pattern, dialect]), language)

    @staticmethod
    def choice(options: Iterable[str]) -> Grammar:
        """One of the given texts.

        Raises:
            GrammarError: no options, or one that is not text.
        """
        if not isinstance(options, Iterable):
            raise GrammarError(f"a choice must be a list of texts, not {type(options).__name__}")
        texts = [options] if isinstance(options, str) else list(options)
        if not texts:
            raise GrammarError("a choice needs at least one option")
        for option in texts:
            if not isinstance(option, str):
                raise GrammarError(f"a choice must be text, not {type(option).__name__}")
        if len(texts) > Limits().max_enum:
            raise LimitError(f"a choice has more than {Limits().max_enum} options (max_enum)")
        return Grammar._of_language("choice", json.dumps(["choice", texts]), Language.literals(texts))

    @staticmethod
    def lark(text: str, start: str = "start") -> Grammar:
        """Texts of a grammar in Lark's notation, with the verdicts of its Earley parser with the dynamic lexer.

        Args:
            text: the grammar, or the name of a shipped one (`formcast:arithmetic`).
            start: the rule to start with.

        Raises:
            GrammarError: with the position of what is malformed or unsupported, or the rule that derives no finite text.
        """
        from .cfg.lark import parse_lark

        return Grammar._of_cfg("lark", text, start, parse_lark)

    @staticmethod
    def gbnf(text: str, root: str = "root") -> Grammar:
        """Texts of a grammar in the notation of llama.cpp. Raises GrammarError as `lark` does."""
        from .cfg.gbnf import parse_gbnf

        return Grammar._of_cfg("gbnf", text, root, parse_gbnf)

    @staticmethod
    def ebnf(text: str, root: str = "root") -> Grammar:
        """Texts of a grammar in W3C-style EBNF. Raises GrammarError as `lark` does."""
        from .cfg.ebnf import parse_ebnf

        return Grammar._of_cfg("ebnf", text, root, parse_ebnf)

    @staticmethod
    def structural_tag(spec: Any, *, limits: Limits | None = None) -> TagGrammar:
        """Free text and tags with a grammar inside, see `structural_tag.spec` for what there is.

        Args:
            spec: a tree of nodes, its JSON form (a mapping or JSON text), or xgrammar's and vLLM's `structural_tag`.
            limits: budgets for the check.

        Raises:
            GrammarError: with the JSON pointer of what is malformed, unknown, unsupported or contradictory.
        """
        from .structural_tag.grammar import TagGrammar

        with RELAXED:
            return TagGrammar(spec, limits or Limits())

    @staticmethod
    def _of_cfg(kind: str, text: str, start: str, parse: Callable[[str, str, Limits | None], Any]) -> Grammar:
        if not isinstance(text, str):
            raise GrammarError(f"a grammar must be text, not {type(text).__name__}")
        from .cfg import compile_cfg, inspect_grammar

        text = grammar_text(text, kind)
        try:
            parsed = parse(text, start, None)
        except GrammarError as error:
            raise error.within(text) from None

        def build(limits: Limits, special_tokens: Mapping[str, int | None] | None) -> Compiled:
            return Compiled(*compile_cfg(parsed, limits, special_tokens))

        def findings() -> list[Finding]:
            found = inspect_grammar(parsed)
            ways = ((found.unproductive, "no finite text is derived from it"), (found.unreachable, f"the rule {start} never leads to it"))
            return [Finding(Pointer(), rule, "unused", reason) for rules, reason in ways for rule in rules]

        return Grammar(kind, json.dumps([kind, text, start]), build, findings)

    @staticmethod
    def of(python_type: Any, **options: Any) -> Grammar:
        """JSON documents of a Python type: anything Pydantic understands (models, dataclasses, TypedDict, `list[int]`, `Literal`,
        enums, unions), or the keyword arguments of a function.

        Args:
            python_type: the type or function.
            options: as for `json_schema`.

        Raises:
            GrammarError: the type has no JSON Schema.
        """
        from pydantic import PydanticUserError, TypeAdapter

        is_function = callable(python_type) and (inspect.isroutine(python_type) or isinstance(python_type, functools.partial))
        try:
            adapter: Any = TypeAdapter
            schema = _signature_schema(python_type) if is_function else adapter(python_type).json_schema()
        except (PydanticUserError, AttributeError, NameError, TypeError, ValueError) as error:
            raise GrammarError(f"{python_type!r} has no JSON Schema: {str(error).splitlines()[0]}") from error
        return Grammar.json_schema(_closed(schema), **options)

    @staticmethod
    def _of_language(kind: str, key: str, language: Language) -> Grammar:
        if language.is_empty(Limits()):
            raise GrammarError("no text satisfies the constraint")

        def build(limits: Limits, _tokens: object) -> Compiled:
            machine = Machine(limits=limits)
            return Compiled(machine, machine.start_of_text(leaf_row(machine, language.automaton(limits))))

        return Grammar(kind, key, build)

    # --- use -------------------------------------------------------------------------------------------------------

    def compile(self, limits: Limits | None = None, special_tokens: Mapping[str, int | None] | None = None) -> Compiled:
        """A fresh byte automaton.

        Args:
            special_tokens: ids by name of the special tokens of the vocabulary it is for, None for end tokens.

        Raises:
            GrammarError: the constraint admits nothing.
            LimitError: a budget is reached.
        """
        with RELAXED:
            return self._build(limits or Limits(), special_tokens)

    def accepts(self, text: str) -> bool:
        """Whether `text` as a whole satisfies the constraint."""
        own = self._compiled()
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return False
        with own.machine.lock:
            state = own.machine.run(own.start, data)
            return state != DEAD and own.machine.accepting(state)

    def _compiled(self) -> Compiled:
        with self._lock:
            if self._own is None:
                self._own = self.compile()
            return self._own

    def diagnose(self, text: str) -> Failure | None:
        """Where and why `text` leaves the constraint; None if it satisfies it. Takes longer than `accepts`.

        Raises:
            GrammarError: the constraint admits nothing.
            LimitError: a budget is reached.
        """
        own = self._compiled()
        with own.machine.lock:
            return diagnose(own.machine, own.start, text, is_json=self.kind == "json_schema")

    @staticmethod
    def explain_schema(
        schema: Mapping[str, Json] | str | bool | type,
        *,
        draft: str | None = None,
        registry: Mapping[str, Json] | None = None,
        limits: Limits | None = None,
    ) -> list[Finding]:
        """What becomes of each keyword of a schema, of one that `json_schema` refuses too.

        Args:
            schema, draft, registry, limits: as for `json_schema`.

        Raises:
            GrammarError: it is no JSON, or neither an object nor a boolean.
            LimitError: it is too large to be looked at.
        """
        limits = limits or Limits()
        _, root = _load_schema(schema, limits)
        return list(check_schema(Expander(Document(root, draft_of(root, draft), _load_registry(registry)), limits)))

    def explain(self) -> list[Finding]:
        """What becomes of each keyword of a schema, by JSON pointer, and which rules of a grammar are in no text; else empty."""
        return self._findings() if self._findings is not None else []


def _separators(given: Any) -> tuple[str, str] | None:
    if given is None:
        return None
    pair = tuple(given) if isinstance(given, list | tuple) else ()
    if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        raise GrammarError(f"separators must be an item and a key separator, not {given!r}")
    return pair


def _load_registry(registry: Any) -> dict[str, Json]:
    """A private copy with exact decimals."""
    if registry is None:
        return {}
    if not isinstance(registry, Mapping):
        raise GrammarError(f"a registry must map URIs to schemas, not be {type(registry).__name__}")
    try:
        _check_length(json_text.least_length(registry), Limits())
        return json_text.loads(json_text.dumps(registry))
    except ValueError as error:
        raise GrammarError(f"the registry is not JSON: {error}", pointer="") from error


def _load_schema(schema: Any, limits: Limits) -> tuple[str, Json]:
    """JSON text of the schema and a private copy with exact decimals."""
    if isinstance(schema, type):
        make = getattr(schema, "model_json_schema", None)
        if make is None:
            raise GrammarError(f"{schema.__name__} is neither a schema nor a Pydantic model; use Grammar.of for other types")
        schema = _closed(make())
    try:
        if not isinstance(schema, str):
            _check_length(json_text.least_length(schema), limits)
        text = schema if isinstance(schema, str) else json_text.dumps(schema)
        _check_length(len(text), limits)
        root = json_text.loads(text)
    except ValueError as error:
        raise GrammarError(f"the schema is not JSON: {error}") from error
    if not isinstance(root, bool | dict):
        raise GrammarError(f"a schema must be an object or a boolean, not {type(root).__name__}", pointer="")
    return text, root


def _check_length(length: int, limits: Limits) -> None:
    if length > limits.max_bytes:
        raise LimitError(f"the schema is longer than {limits.max_bytes} bytes (max_bytes)", pointer="")


def _closed(schema: Json) -> Json:
    """The schema Pydantic made, with objects closed where it leaves open what it would ignore."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack.extend(part)
        elif isinstance(part, dict):
            if isinstance(part.get("properties"), dict) and part.get("type") == "object":
                part.setdefault("additionalProperties", False)
            stack.extend(v for k, v in part.items() if k not in ("const", "enum", "default", "examples"))
    return schema


def _signature_schema(function: Callable[..., Any]) -> Json:
    """Schema of the keyword arguments of a function."""
    from pydantic import TypeAdapter

    adapters: list[tuple[str, Literal["validation"], TypeAdapter[Any]]] = []
    required: list[str] = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise GrammarError(f"the parameter {name!r} cannot be given by keyword")
        adapters.append((name, "validation", TypeAdapter(Any if parameter.annotation is parameter.empty else parameter.annotation)))
        if parameter.default is parameter.empty:
            required.append(name)
    schemas, shared = TypeAdapter.json_schemas(adapters)
    properties = {name: schemas[name, mode] for name, mode, _ in adapters}
    return {**shared, "type": "object", "properties": properties, "required": required}
