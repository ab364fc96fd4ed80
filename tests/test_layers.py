"""The layers of docs/architecture.md: who may import whom, and which imports stay light."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "formcast"
LAYERS = ("grammar", "fsm_cache", "engine", "api")  # lowest first
LEAF = "schemas"  # data: knows the error tree only, known to `grammar`, which takes their names, and to `api`
TENSOR_STACK = frozenset({"torch", "triton", "transformers"})
PURE = (
    "grammar",
    "fsm_cache",
    "engine/kv",
    "engine/scheduler.py",
    "engine/step_plan.py",
    "engine/sequence.py",
    "engine/family.py",
    "engine/deadlines.py",
    "engine/beams/search.py",
    "engine/request.py",
)


class Import(NamedTuple):
    """One import statement: the file (relative to the root), its line, and every module it may load."""

    file: str
    line: int
    targets: tuple[str, ...]


def module_of(file: Path, root: Path) -> tuple[str, ...]:
    """Parts of the dotted package that relative imports in `file` start from."""
    return (PACKAGE, *file.relative_to(root).parent.parts)


def targets_of(node: ast.AST, package: tuple[str, ...]) -> tuple[str, ...]:
    """Dotted names that one syntax node imports, `from . import name` counted as the module `name` too."""
    if isinstance(node, ast.Import):
        return tuple(alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else ()
        stem = ".".join((*base, *filter(None, [node.module])))
        return (stem, *(f"{stem}.{alias.name}" for alias in node.names))
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called in {"import_module", "__import__"}:
            name = node.args[0].value
            dots = len(name) - len(name.lstrip("."))
            return (".".join((*package[: len(package) - dots + 1], name[dots:])) if dots else name,)
    return ()


def imports_in(root: Path, *places: str) -> Iterator[Import]:
    """Every import, at any depth of the code, in the files and folders `places` of `root`."""
    for place in places:
        path = root / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            yield from imports_of(file, root)


@cache
def imports_of(file: Path, root: Path) -> tuple[Import, ...]:
    package, name = module_of(file, root), file.relative_to(root).as_posix()
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8"), filename=name))
    return tuple(Import(name, getattr(node, "lineno", 0), targets) for node in nodes if (targets := targets_of(node, package)))


def layer_named(target: str) -> str | None:
    """The package of formcast that a dotted name lies in, or None for everything else."""
    head, _, rest = target.partition(".")
    layer = rest.partition(".")[0]
    return layer if head == PACKAGE and layer in (*LAYERS, LEAF) else None


def allowed(layer: str, target: str) -> bool:
    """Whether code of `layer` may import the dotted name `target`."""
    other = layer_named(target)
    if other is None or other == layer:
        return True
    if layer == LEAF:
        return f"{PACKAGE}.grammar.errors".startswith(target) or target.startswith(f"{PACKAGE}.grammar.errors")
    if other == LEAF:
        return layer in ("grammar", "api")
    return LAYERS.index(other) < LAYERS.index(layer)


def back_edges(root: Path) -> list[str]:
    return [
        f"{entry.file}:{entry.line} imports {target}"
        for layer in (*LAYERS, LEAF)
        for entry in imports_in(root, layer)
        for target in entry.targets
        if not allowed(layer, target)
    ]


def loaded_after(statement: str, modules: frozenset[str]) -> set[str]:
    """Which of `modules` a fresh interpreter has loaded after `statement`."""
    probe = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout)) & modules


def test_no_package_imports_what_stands_above_it():
    assert back_edges(ROOT) == []


def test_pure_code_never_names_the_tensor_stack():
    named = [
        f"{entry.file}:{entry.line} imports {target}"
        for entry in imports_in(ROOT, *PURE)
        for target in entry.targets
        if target.partition(".")[0] in TENSOR_STACK
    ]
    assert named == []


def test_nothing_imports_tests_benches_or_examples():
    outside = re.compile(r"(formcast\.)?(tests|bench|examples)(\.|$)")
    entries = imports_in(ROOT, "__init__.py", *LAYERS, LEAF)
    assert [entry for entry in entries if any(outside.match(target) for target in entry.targets)] == []


@pytest.mark.parametrize(
    ("file", "text", "edge"),
    [
        ("grammar/a.py", "from ..fsm_cache import trie", "formcast.fsm_cache"),
        ("grammar/json_schema/a.py", "from ...engine.core import EngineCore", "formcast.engine.core"),
        ("fsm_cache/a.py", "import formcast.api.llm", "formcast.api.llm"),
        ("engine/a.py", "def f():\n    from .. import api", "formcast.api"),
        ("engine/kv/a.py", "import importlib\nimportlib.import_module('formcast.api')", "formcast.api"),
        ("fsm_cache/a.py", "from importlib import import_module\nimport_module('..engine.core', __package__)", "formcast.engine.core"),
        ("fsm_cache/a.py", "from .. import schemas", "formcast.schemas"),
        ("schemas/a.py", "from ..grammar.automaton import State", "formcast.grammar.automaton"),
    ],
)
def test_a_back_edge_is_found(tmp_path: Path, file: str, text: str, edge: str):
    for layer in (*LAYERS, LEAF):
        (tmp_path / layer).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert any(found.startswith(f"{file}:") and found.endswith(f" imports {edge}") for found in back_edges(tmp_path))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("api/a.py", "from ..engine import core\nfrom .. import schemas\nimport torch"),
        ("engine/models/a.py", "from ...fsm_cache.trie import Trie\nfrom . import loader\nfrom .. import config"),
        ("schemas/a.py", "from ..grammar.errors import FormcastError"),
        ("grammar/a.py", "from . import errors\nfrom .. import schemas\nimport numpy as np"),
    ],
)
def test_a_forward_edge_is_allowed(tmp_path: Path, file: str, text: str):
    for layer in (*LAYERS, LEAF):
        (tmp_path / layer).mkdir()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert back_edges(tmp_path) == []


@pytest.mark.parametrize(
    "module",
    [
        "formcast.grammar",
        "formcast.fsm_cache",
        "formcast.engine.scheduler",
        "formcast.engine.request",
        "formcast.engine.kv",
        "formcast.schemas",
    ],
)
def test_importing_pure_code_leaves_the_tensor_stack_out(module: str):
    assert loaded_after(f"import {module}", TENSOR_STACK) == set()


def test_importing_the_constraint_names_leaves_the_tensor_stack_out():
    names = "Grammar, Vocabulary, compile_grammar, Limits, GrammarError"
    assert loaded_after(f"from formcast import {names}", TENSOR_STACK) == set()


def test_importing_the_root_alone_loads_nothing_heavy():
    assert loaded_after("import formcast", TENSOR_STACK | {"numpy", "numba", "fastapi", "pydantic", "tokenizers"}) == set()


def test_every_package_is_listed_for_the_wheel():
    """Packages are listed by hand in pyproject.toml, so that tests, benches and data stay out; one forgotten is not shipped."""
    section = re.search(r"^packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert section is not None
    listed = set(re.findall(r'"(formcast[\w.]*)"', section.group(1)))
    folders = [ROOT / layer for layer in (*LAYERS, LEAF)]
    present = {
        ".".join((PACKAGE, *file.parent.relative_to(ROOT).parts)) for folder in folders for file in folder.rglob("*.py") if file.is_file()
    }
    assert listed == present | {PACKAGE}
