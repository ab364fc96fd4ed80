"""Where the Python package index keeps a wheel.

pip is asked, so that the user's configuration holds: indexes, mirrors, folders of wheels, proxies, certificates.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

_WHEEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\.whl")
_NAME_SEPARATORS = re.compile(r"[-_.]+")


class PackageIndexError(Exception):
    """pip could not say where a package is; the message says why in one line."""


@dataclass(frozen=True, kw_only=True)
class Wheel:
    """A wheel on an index.

    Attributes:
        url: `https:`, `http:` or `file:`.
        filename: last part of the URL, safe as a file name.
        sha256: in hexadecimal; None if the index does not state it.
    """

    url: str
    filename: str
    sha256: str | None


class PackageIndex:
    """The package index of this Python's pip."""

    def locate(self, requirements: Sequence[str]) -> list[Wheel]:
        """The wheels of `name==version` requirements, in the same order, without dependencies.

        Raises:
            PackageIndexError: pip is missing or failed, or a package has no wheel.
        """
        report = self._report(requirements)
        wheels = {_canonical(item["metadata"]["name"]): _wheel(item["download_info"]) for item in report["install"]}
        try:
            return [wheels[_canonical(requirement.partition("==")[0])] for requirement in requirements]
        except KeyError as error:
            raise PackageIndexError(f"pip did not find {error.args[0]}") from error

    def _report(self, requirements: Sequence[str]) -> dict[str, Any]:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:"]
        command += ["--no-input", "--disable-pip-version-check", "--quiet", "--report=-", *requirements]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise PackageIndexError(_reason(done.stderr))
        return json.loads(done.stdout)


def _wheel(download_info: dict[str, Any]) -> Wheel:
    url = download_info["url"]
    filename = PurePosixPath(unquote(urlsplit(url).path)).name
    if not _WHEEL_NAME.fullmatch(filename):
        raise PackageIndexError(f"pip names {filename!r}, which is not a wheel")
    return Wheel(url=url, filename=filename, sha256=download_info.get("archive_info", {}).get("hashes", {}).get("sha256"))


def _canonical(name: str) -> str:
    """PEP 503."""
    return _NAME_SEPARATORS.sub("-", name).lower()


def _reason(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return errors[-1] if errors else lines[-1] if lines else "pip failed without saying why"
