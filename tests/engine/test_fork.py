"""Processes that were forked from one with an engine: they have none of its threads, and must not wait for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

_SUPPORT = Path(__file__).parents[1] / "support"

_SCRIPT = """
import os, signal, sys, warnings
import torch
from engine_fakes import FakeCompiler, greedy, tiny_core
from formcast.engine.client import EngineClient
from formcast.engine.kernels.row_math import NormWeights, norm
from formcast.engine.request import EngineStopped
from formcast.fsm_cache.compiler import FsmCompiler
from formcast.fsm_cache.vocabulary import Vocabulary
from formcast.grammar import Grammar

torch.set_num_threads(2)
warnings.simplefilter("ignore")
weights = NormWeights(scale=torch.ones(600), epsilon=1e-6)
rows = torch.ones(1000, 600)
compiler = FsmCompiler(Vocabulary([bytes([byte]) for byte in range(256)], {256}, 257))
client = EngineClient(tiny_core())
expected = norm(rows, weights)  # large enough for a team of threads
assert compiler.submit(Grammar.regex("a+")).result().cursor().advance(ord("a"))
child = os.fork()
if child == 0:
    signal.alarm(60)
    assert torch.equal(norm(rows, weights), expected)
    assert torch.equal(rows.t() @ rows, torch.full((600, 600), 1000.0))
    assert compiler.submit(Grammar.regex("b+")).result().cursor().advance(ord("b"))
    assert compiler.submit(Grammar.regex("a+")).result().cursor().advance(ord("a"))
    try:
        client.submit(greedy("r", b"x"), print)
    except EngineStopped:
        client.abort("r")
        client.close()
        os._exit(0)
    os._exit(1)
_, status = os.waitpid(child, 0)
client.close()
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


@pytest.mark.slow
def test_a_forked_process_computes_compiles_and_is_told_that_the_engine_stayed_behind():
    env = {**os.environ, "PYTHONPATH": str(_SUPPORT)}
    done = subprocess.run([sys.executable, "-c", _SCRIPT], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
