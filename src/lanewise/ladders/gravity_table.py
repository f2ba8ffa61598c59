"""What the two gravity ladders show beside the columns of all ladders."""

from __future__ import annotations

from typing import Any

from lanewise.ladders.rung import NOTHING, Column, Rung, digits


def number(rung: Rung, key: str) -> float | None:
    """An extra number of a rung, where it has one."""
    value: Any = rung.extra.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def _text(key: str, form: str) -> Any:
    def text(rung: Rung) -> str:
        value = number(rung, key)
        return (
            NOTHING if value is None else digits(value) if form == "digits" else format(value, form)
        )

    return text


RATES = (
    Column("pairs/s", _text("pairs_per_second", ".2e")),
    Column("GFLOP/s", _text("gflops", "digits")),
    Column("of bound", _text("share_of_bound", ".0%")),
)


def rate_text(rung: Rung) -> str:
    """Pairs a second, GFLOP/s, and the share of the bound where there is one."""
    rate, gflops, share = (
        number(rung, key) for key in ("pairs_per_second", "gflops", "share_of_bound")
    )
    text = f"{rate or 0.0:.2e} pairs/s ({digits(gflops or 0.0)} GFLOP/s"
    return text + (f", {share:.0%} of the bound)" if share is not None else ")")
