"""The public names: all there, and nothing that `__all__` names is missing."""

from __future__ import annotations

import importlib
from importlib import resources
from types import ModuleType

import pytest

import formcast

CONTRACT = ("LLM", "SamplingParams", "Grammar", "Vocabulary", "compile_grammar", "Limits", "GrammarError")
PACKAGES = ("formcast", "formcast.grammar", "formcast.fsm_cache", "formcast.engine", "formcast.api", "formcast.schemas")


def modules_with_all() -> list[ModuleType]:
    return [module for module in map(importlib.import_module, PACKAGES) if hasattr(module, "__all__")]


@pytest.mark.parametrize("name", CONTRACT)
def test_the_contract_is_exported(name: str):
    assert name in formcast.__all__
    assert getattr(formcast, name) is not None


def test_all_names_what_exists():
    for module in modules_with_all():
        names = module.__all__
        assert sorted(set(names)) == sorted(names), f"{module.__name__}.__all__ repeats a name"
        assert [name for name in names if not hasattr(module, name)] == [], module.__name__


def test_dir_shows_lazy_names():
    assert set(formcast.__all__) <= set(dir(formcast))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = formcast.no_such_name  # pyright: ignore[reportAttributeAccessIssue]


def test_every_public_name_is_documented():
    callables = [(name, getattr(formcast, name)) for name in formcast.__all__]
    assert [name for name, value in callables if callable(value) and not (value.__doc__ or "").strip()] == []


def test_the_package_is_marked_as_typed():
    assert resources.files("formcast").joinpath("py.typed").is_file()
