"""What viewers may say, checked: all else is answered with the reason and changes nothing; and the
text of messages to them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from lanewise.support.errors import InputError

LONGEST = 64 * 1024  # bytes of a message
SLOWEST, FASTEST = 0.1, 240.0  # frames a second that may be requested
MOST_STEPS = 1_000_000
MOST_SEQUENCE = (1 << 32) - 1
Check = Callable[[Any], bool]


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> bool:
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        return plain and low <= value <= high  # NaN is not

    return check


def _whole(low: int, high: int) -> Check:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high

    return check


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= 200


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= 16 and all(map(_text, value))  # pyright: ignore


_TIME = _number(0, 1e12)
_REAL = _number(-3e38, 3e38)
SCHEMA: Mapping[str, tuple[Mapping[str, Check], ...]] = {
    "hello": ({"token": _text},),
    "credit": ({"n": _whole(0, 4)},),
    "ack": (
        {"sequence": _whole(0, MOST_SEQUENCE), "decode": _TIME, "draw": _TIME,
         "queue": _whole(0, 1000)},
    ),
    "pause": ({},),
    "run": ({},),
    "step": ({"n": _whole(1, MOST_STEPS)},),
    "colour": ({"field": _text},),
    "scale": ({"name": _text},),
    "range": ({"low": _REAL, "high": _REAL}, {"auto": lambda value: value is True}),
    "show": ({"kinds": _texts},),
    "slice": ({"axis": _whole(0, 2), "place": _number(0, 1)},),
    "seek": ({"frame": _whole(-(1 << 31), MOST_SEQUENCE)},),
    "rate": ({"n": _number(SLOWEST, FASTEST)},),
    "pick": (
        {"row": _whole(0, MOST_SEQUENCE)},
        {"row": _whole(0, MOST_SEQUENCE), "order": _whole(0, 255)},
    ),
    "shot": ({},),
}  # fmt: skip
"""What each message has besides "do", in one of its forms, and nothing else."""

COMMANDS = frozenset({"pause", "run", "step"})
"""Those that say how the run continues."""


def read_message(data: str | bytes) -> dict[str, Any]:
    """A message of a viewer. Raises `InputError` for one that is not in `SCHEMA`."""
    if isinstance(data, bytes):
        raise InputError("bytes are no message; wanted JSON as text")
    try:
        message: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise InputError("no JSON; wanted an object with a key do") from None
    do = message.get("do") if isinstance(message, dict) else None
    if not isinstance(do, str) or do not in SCHEMA:
        raise InputError(f"no such message; wanted do as one of {', '.join(SCHEMA)}")
    values = {name: value for name, value in message.items() if name != "do"}
    for form in SCHEMA[do]:
        if values.keys() == form.keys() and all(form[n](v) for n, v in values.items()):
            return message
    forms = " or ".join(", ".join(form) or "nothing" for form in SCHEMA[do])
    raise InputError(f"{do} with other values than it takes; wanted {forms}, within their limits")


def written(message: Mapping[str, Any]) -> str:
    """A message to viewers. Numbers that are not finite are texts: JSON has none, and browsers
    reject what Python writes instead.
    """
    return json.dumps(_finite(message), allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case Mapping():
            return {name: _finite(v) for name, v in value.items()}
        case list() | tuple():
            return [_finite(v) for v in value]
        case _:
            return value
