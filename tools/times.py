"""Times as a command line names them: of the calendar, or since a run began.

Rule: what a table shows of a frame (`event_text.time_text`) can be given back, in every option that takes a time.
"""

from datetime import UTC, datetime
from decimal import Decimal

from radixledger.tools.event_text import time_text

FORMS = "2026-01-31T12:00:00Z, +1500ms and +1.5s"
"""What such times look like, for messages."""

TOO_LARGE = 1 << 63
"""No frame is of such a time: it has 8 bytes."""


def time_ns_of(text: str, begun_ns: int) -> int:
    """A time in nanoseconds: ISO 8601 (UTC if it does not say), or `+1500ms`, `+1.5s`, `+1500` (ms) since a run began.

    Seconds may come without the plus. A run in virtual time began at 0, whatever its first event says. Raises ValueError.
    """
    try:
        since = text.startswith("+") or text.endswith("s")
        nanoseconds = _since(text, begun_ns) if since else _calendar(text)
    except (ValueError, ArithmeticError):
        nanoseconds = TOO_LARGE
    if abs(nanoseconds) >= TOO_LARGE:
        raise ValueError(f"{text!r} is no time; {FORMS} are")
    return nanoseconds


def _since(text: str, begun_ns: int) -> int:
    base = 0 if time_text(begun_ns).startswith("+") else begun_ns
    number, unit = text.removeprefix("+"), 10**6
    if number.endswith("s") and not number.endswith("ms"):
        number, unit = number.removesuffix("s"), 10**9
    return base + round(Decimal(number.removesuffix("ms")) * unit)


def _calendar(text: str) -> int:
    stamp = datetime.fromisoformat(text)
    since = (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
