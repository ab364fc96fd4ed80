"""Budgets of a constraint: what hostile or accidental input may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Budgets for one constraint. Reaching one raises `LimitError`.

    Attributes:
        max_bytes: size of the schema, pattern or grammar text in bytes.
        max_depth: nesting depth of a pattern or grammar.
        max_schema_depth: nesting depth of a schema.
        max_states: states of one leaf automaton (pattern, format, number).
        max_nodes: nodes of one grammar's automaton (24 bytes each).
        max_enum: values of one `enum` or `choice`.
        max_steps: work units of one build, or of a pattern between two new states, about 2 µs each (a unit is roughly one derivative; a
            schema place takes 10).
    """

    max_bytes: int = 4_000_000
    max_depth: int = 20_000
    max_schema_depth: int = 20_000
    max_states: int = 100_000
    max_nodes: int = 2_000_000
    max_enum: int = 100_000
    max_steps: int = 1_000_000
