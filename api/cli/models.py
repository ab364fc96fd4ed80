"""`formcast pull | list | show | rm`: the models on this machine."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from ...engine.models.store import ModelStore, StoredModel
from . import terminal
from .download import download_progress
from .errors import OK
from .sizes import human_bytes, human_count
from .table import print_table


def run(args: argparse.Namespace) -> int:
    store = ModelStore()
    {"pull": _pull, "list": _list, "show": _show, "rm": _remove}[args.command](store, args)
    return OK


def _pull(store: ModelStore, args: argparse.Namespace) -> None:
    files = store.pull(args.model, progress=download_progress(args.model, quiet=args.quiet))
    if not args.quiet:
        terminal.note(f"{args.model} is at {files.path}")


def _list(store: ModelStore, args: argparse.Namespace) -> None:
    models = _known_models(store)
    if args.json:
        print(json.dumps(models, indent=2))
        return
    rows = [(model["name"], human_bytes(model["num_bytes"]), "yes" if model["here"] else "no", model["licence"] or "") for model in models]
    print_table(("NAME", "SIZE", "HERE", "LICENCE"), rows)


def _known_models(store: ModelStore) -> list[dict[str, Any]]:
    """What is here, then what a short name would fetch."""
    here = [asdict(model) | {"here": True} for model in store.list()]
    names = {model["name"] for model in here}
    rest = [
        StoredModel(name=name, source=entry.summary, file=entry.filename, num_bytes=entry.num_bytes, licence=entry.licence)
        for name, entry in store.catalogue.items()
        if name not in names
    ]
    return here + [asdict(model) | {"here": False} for model in rest]


def _show(store: ModelStore, args: argparse.Namespace) -> None:
    info = store.show(args.model)
    if args.json:
        print(json.dumps(asdict(info), indent=2, default=str))
        return
    facts = {
        "name": info.name,
        "architecture": info.architecture,
        "parameters": None if info.num_parameters is None else human_count(info.num_parameters),
        "context": info.context_length,
        "size": human_bytes(info.num_bytes),
        "quantisation": info.quantisation,
        "licence": info.licence,
        "path": info.path,
    }
    for name, fact in facts.items():
        print(f"{name:<13} {'unknown' if fact is None else fact}")


def _remove(store: ModelStore, args: argparse.Namespace) -> None:
    store.remove(args.model)
    terminal.note(f"{args.model} is removed")
