"""What the two gravity ladders show besides the columns of all ladders."""

from __future__ import annotations

from lanewise.ladders.rung import Column, Rung, digits, number, number_text

RATES = (
    Column("pairs/s", number_text("pairs_per_second", "{:.2e}".format)),
    Column("GFLOP/s", number_text("gflops", digits)),
    Column("of peak", number_text("share_of_peak", "{:.0%}".format)),
    Column("of arithmetic", number_text("share_of_arithmetic", "{:.0%}".format)),
    Column("of bound", number_text("share_of_bound", "{:.0%}".format)),
    Column(
        "memory GB/s",
        number_text("memory_bytes_per_second", lambda rate: digits(rate * 1e-9)),
    ),
)


def rate_text(rung: Rung) -> str:
    """Pairs a second, GFLOP/s, and the share of the bound where there is one."""
    rate, gflops, share = (
        number(rung, key) for key in ("pairs_per_second", "gflops", "share_of_bound")
    )
    text = f"{rate or 0.0:.2e} pairs/s ({digits(gflops or 0.0)} GFLOP/s"
    return text + (f", {share:.0%} of the bound)" if share is not None else ")")
