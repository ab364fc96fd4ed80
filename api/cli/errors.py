"""How a command ends.

0    the answer is on stdout
1    it could not be had: a download, the engine, an answer cut before its JSON was complete
2    bad input: flags, files, a schema, a model that does not exist
130  Ctrl-C
141  the reader of stdout went away
"""

from __future__ import annotations

OK = 0
FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
READER_GONE = 141


class UsageError(Exception):
    """Bad input; the message is one line."""


class CommandFailed(Exception):
    """A command could not do its work; the message is one line."""
