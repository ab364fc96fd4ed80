"""The process that helps to compile kernels at their first use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

FIRST_USE = "from formcast.grammar.kernel_cache import cache_folder; print(cache_folder(), flush=True); input()"
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")


def first_use(home: Path) -> subprocess.Popen[str]:
    """A process that uses kernels below `home` and waits."""
    command = [sys.executable, "-W", "error", "-c", FIRST_USE]
    environment = {**os.environ, "FORMCAST_HOME": str(home)}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def children(process: subprocess.Popen[str]) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]


def is_running(process_id: int) -> bool:
    """Whether it is there and more than a record of how it ended."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def finish(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit status and what it complained about."""
    _, errors = process.communicate("\n", timeout=60)
    return process.returncode, errors


@pytest.mark.parametrize("ending", ["exit", "kill"])
def test_the_helper_fills_the_folder_and_ends_with_its_parent(tmp_path, ending):
    with first_use(tmp_path) as parent:
        assert parent.stdout is not None
        folder = Path(parent.stdout.readline().strip())
        (helper,) = children(parent)
        wait_until(lambda: any(folder.rglob("*.nbi")))
        if ending == "kill":
            parent.kill()
            parent.wait()
        else:
            assert finish(parent) == (0, "")
        wait_until(lambda: not is_running(helper))


def test_a_killed_helper_is_not_missed(tmp_path):
    with first_use(tmp_path) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        (helper,) = children(parent)
        os.kill(helper, signal.SIGKILL)
        wait_until(lambda: not children(parent))  # its record is gone too
        assert finish(parent) == (0, "")


def test_only_the_first_use_has_a_helper(tmp_path):
    with first_use(tmp_path) as first, first_use(tmp_path) as second:
        assert first.stdout is not None and second.stdout is not None
        assert first.stdout.readline() == second.stdout.readline() != ""
        assert len(children(first)) + len(children(second)) == 1
        assert finish(first) == finish(second) == (0, "")


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "kernels").write_text("a file where the folder should be")
    with first_use(tmp_path) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert not children(process)
        assert finish(process) == (0, "")
