"""What the texts on the command line mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from lanewise.sims.common.options import GivenOptions
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.waves.synthesis import Signal

SIGNAL = ("h0", "cosi", "psi", "phi0", "freq", "alpha", "delta", "f1dot", "f2dot", "f3dot")


def require(matched: GivenOptions, *names: str, flags: dict[str, str] | None = None) -> None:
    """Refuse a command that lacks options; flags: those that have another name than their field."""
    missing = [
        (flags or {}).get(n, f"--{n.replace('_', '-')}") for n in names if matched[n] is None
    ]
    if missing:
        raise InputError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; --help "
            "describes them"
        )


def number(text: str, option: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{option} has {text!r}; wanted a finite number")
    return value


def numbers(text: str, option: str) -> list[float]:
    """Finite numbers with commas between."""
    return [number(x, option) for x in text.split(",")]


def pair(text: str, option: str) -> tuple[float, float]:
    """Two finite numbers with a comma between."""
    parts = text.split(",")
    if len(parts) != 2:
        raise InputError(f"{option} is {text!r}; wanted two numbers with a comma between")
    return number(parts[0], option), number(parts[1], option)


def low_and_width(text: str, option: str) -> tuple[float, float]:
    """LOW or LOW,WIDTH."""
    return pair(text, option) if "," in text else (number(text, option), 0.0)


def gps(text: str, option: str) -> int:
    """Seconds as GPS nanoseconds, without rounding on the way."""
    try:
        value = Decimal(text) * 10**9
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite():
        raise InputError(f"{option} is {text!r}; wanted GPS seconds")
    return round(value)


def sqrt_s(text: str | None, names: Sequence[str]) -> dict[str, float] | None:
    """One value a detector, in the order of their names."""
    if text is None:
        return None
    values = numbers(text, "--sqrt-s")
    if len(values) != len(names):
        raise InputError(
            f"--sqrt-s has {len(values)} values; wanted {len(names)}, for {', '.join(names)}"
        )
    return dict(zip(names, values, strict=True))


def signal(text: str, reference: int) -> Signal:
    """A signal of NAME=NUMBER with commas between. reference: GPS nanoseconds."""
    from lanewise.sims import waves

    parameters: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = (x.strip() for x in part.partition("="))
        if name not in SIGNAL or name in parameters:
            raise InputError(
                f"--signal has {part!r}; wanted NAME=NUMBER, each once, of {', '.join(SIGNAL)}"
            )
        parameters[name] = number(value, "--signal")
    if missing := [n for n in ("h0", "cosi", "freq", "alpha", "delta") if n not in parameters]:
        raise InputError(f"--signal lacks {', '.join(missing)}")
    return waves.Signal(reference=reference, **parameters)
