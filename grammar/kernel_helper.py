"""A second process that compiles some of the kernels while the first use of a version compiles the others.

numba compiles under a lock of its process, so only another process helps. It leaves what it made in the cache folder and is not waited for:
who comes to a kernel that is not there yet compiles it. The helper ends when it is done or when its parent ends, whichever comes first.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

# Modules that a process comes to late, in the order in which they need least of what comes early.
_SHARE = tuple(f"formcast.fsm_cache.kernels.{name}" for name in ("leaf", "rows", "book", "tasks", "walk", "classify"))

# Its standard input is a pipe that nobody writes to: it ends with the parent.
_PROGRAM = """
import importlib, os, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()
count = int(sys.argv[1])
sys.path[:] = sys.argv[2 + count :]
for name in sys.argv[2 : 2 + count]:
    importlib.import_module(name)
"""


def start_helper(folder: Path) -> None:
    """Starts the helper if `folder`, which this makes, is not there yet: so at most one process per version does so.

    Without a folder that can be written, or a Python to run, there is none.
    """
    try:
        folder.mkdir(parents=True)
        if "python" in Path(sys.executable or "").name:
            command = [sys.executable, "-c", _PROGRAM, str(len(_SHARE)), *_SHARE, *sys.path]
            helper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            threading.Thread(target=_reap, args=(helper,), name="formcast-kernels", daemon=True).start()
    except OSError:
        pass


def _reap(helper: subprocess.Popen[bytes]) -> None:
    with helper:  # closes the pipe, but not before
        helper.wait()
