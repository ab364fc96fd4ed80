"""Dates, times and durations of RFC 3339."""

from __future__ import annotations

from collections.abc import Iterable

from ..regex import Language

# 5.6: the calendar of section 5.7, where February has 29 days in leap years.
_LEAP_YEAR = r"(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    rf"|{_LEAP_YEAR}-02-29)"
)

_HOUR = r"(?:[01][0-9]|2[0-3])"
_MINUTE = r"[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_ORDINARY_TIME = rf"{_HOUR}:{_MINUTE}:{_MINUTE}{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_MINUTE})"

# Appendix A. Units follow each other without gaps, weeks stand alone.
_SECONDS = r"[0-9]+S"
_MINUTES = rf"[0-9]+M(?:{_SECONDS})?"
_HOURS = rf"[0-9]+H(?:{_MINUTES})?"
_TIME_OF_DURATION = rf"T(?:{_HOURS}|{_MINUTES}|{_SECONDS})"
_DAYS = r"[0-9]+D"
_MONTHS = rf"[0-9]+M(?:{_DAYS})?"
_YEARS = rf"[0-9]+Y(?:{_MONTHS})?"
DURATION = rf"P(?:(?:{_DAYS}|{_MONTHS}|{_YEARS})(?:{_TIME_OF_DURATION})?|{_TIME_OF_DURATION}|[0-9]+W)"


def date_time() -> Language:
    return Language.pattern(DATE + "[Tt]").concat(time())


def time() -> Language:
    """`full-time`. Second 60 is allowed where it can be a leap second: at 23:59 UTC, after the offset is subtracted."""
    utc = Language.pattern(rf"23:59:60{_FRACTION}[Zz]")
    west = _minutes("-", ((59 - offset, offset) for offset in range(60)))
    west &= _hours("-", ((23 - offset, offset) for offset in range(24)))
    # East of Greenwich the minutes of the offset carry into the hour, unless there are none.
    whole_hours = _minutes(r"\+", [(59, 0)]) & _hours(r"\+", (((23 + offset) % 24, offset) for offset in range(24)))
    carried = _minutes(r"\+", ((offset - 1, offset) for offset in range(1, 60)))
    carried &= _hours(r"\+", ((offset, offset) for offset in range(24)))
    return Language.union((Language.pattern(_ORDINARY_TIME), utc, west, whole_hours, carried))


def _minutes(sign: str, pairs: Iterable[tuple[int, int]]) -> Language:
    """Leap seconds whose local minute and offset minute are one of `pairs`."""
    forms = "|".join(f"{local:02}:60{_FRACTION}{sign}{_HOUR}:{offset:02}" for local, offset in pairs)
    return Language.pattern(f"{_HOUR}:(?:{forms})")


def _hours(sign: str, pairs: Iterable[tuple[int, int]]) -> Language:
    """Leap seconds whose local hour and offset hour are one of `pairs`."""
    return Language.pattern("|".join(f"{local:02}:{_MINUTE}:60{_FRACTION}{sign}{offset:02}:{_MINUTE}" for local, offset in pairs))
