"""`lanewise waves`: make data, compute F-statistics, search."""

from __future__ import annotations

from lanewise.sims.common.options import Given, product_app, run_command
from lanewise.sims.waves.commands.options import (
    Directions,
    Grid,
    Input,
    InUnits,
    Machine,
    Made,
    Profiled,
    Sought,
)

app = product_app("waves")


@run_command(app, Made, name="make-data", common=Machine)
def make_data(matched: Given) -> None:
    """Write SFTs of noise and signals."""
    from lanewise.sims.waves.commands import data

    data.make_data(matched)


@run_command(app, Input, Sought, name="fstat", common=Profiled)
def fstat(matched: Given) -> None:
    """Compute 2F of templates, or of a band of frequencies."""
    from lanewise.sims.waves.commands import statistic

    statistic.fstat(matched)


@run_command(
    app,
    Input,
    Grid,
    Directions,
    InUnits,
    after={"sky": "freq_band", "method": "ephemeris", "dterms": "method", "device": "dterms"},
)
def run(matched: Given) -> None:
    """Search directions and spin-downs by Hough maps over stacks."""
    from lanewise.sims.waves.commands import search

    search.run(matched)
