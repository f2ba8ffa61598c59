"""`lanewise waves`: make data, compute F-statistics, search."""

from __future__ import annotations

from lanewise.sims.common.commands import product_app, run_command
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.viewing import ViewSettings
from lanewise.sims.waves.commands.options import (
    Directions,
    ForPrograms,
    Input,
    InUnits,
    Made,
    Profiled,
    SearchGrid,
    SoughtTemplates,
)

app = product_app("waves")


@run_command(app, Made, name="make-data", common=ForPrograms)
def make_data(matched: GivenOptions) -> None:
    """Write SFTs of noise and signals."""
    from lanewise.sims.waves.commands import data

    data.make_data(matched)


@run_command(app, Input, SoughtTemplates, name="fstat", common=Profiled)
def fstat(matched: GivenOptions) -> None:
    """Compute 2F of templates, or of a band of frequencies."""
    from lanewise.sims.waves.commands import statistic

    statistic.fstat(matched)


@run_command(
    app,
    Input,
    SearchGrid,
    Directions,
    InUnits,
    ViewSettings,
    after={"sky": "freq_band", "method": "ephemeris", "dterms": "method", "device": "dterms"},
)
def run(matched: GivenOptions) -> None:
    """Search directions and spin-downs by Hough maps over stacks."""
    from lanewise.sims.waves.commands import search

    search.run(matched)
