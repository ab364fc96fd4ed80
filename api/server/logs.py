"""Logs of a server: one JSON object a line, or plain text."""

from __future__ import annotations

import json
import logging
from datetime import datetime, timezone
from typing import Literal

LogFormat = Literal["json", "text"]


def set_up_logging(level: str, log_format: LogFormat) -> None:
    """Log to stderr from now on. Libraries speak from "warning" up, unless everything is to be seen."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level="DEBUG" if level == "debug" else "WARNING", handlers=[handler], force=True)
    logging.getLogger("formcast").setLevel(level.upper())


class JsonFormatter(logging.Formatter):
    """One line a record: `time` (RFC 3339), `level`, `logger`, `message`, then the record's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


class TextFormatter(logging.Formatter):
    """`LEVEL logger: message key=value ...`"""

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        return super().formatMessage(record) + "".join(f" {name}={json.dumps(value, default=str)}" for name, value in fields.items())
