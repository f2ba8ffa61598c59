"""`lanewise waves make-data`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lanewise.sims import waves
from lanewise.sims.common.frame import print_json
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.waves.commands.arguments import require, signal, sqrt_s
from lanewise.sims.waves.commands.options import Made
from lanewise.sims.waves.gps import SECOND
from lanewise.sims.waves.ranges import check_setting
from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.waves.sft import SftSet

OF_SIGNALS = ("ephemeris", "ref_time")


def make_data(matched: GivenOptions) -> None:
    """Write the files and say which."""
    require(matched, "out", "band", "start", "sfts")
    if not matched["signal"] and (
        idle := [f"--{n.replace('_', '-')}" for n in OF_SIGNALS if matched[n] is not None]
    ):
        raise InputError(
            f"{' and '.join(idle)} {'needs' if len(idle) == 1 else 'need'} --signal: without a "
            f"signal {'it has' if len(idle) == 1 else 'they have'} no effect"
        )
    asked = matched.make(Made)
    assert asked.out is not None
    made = _sfts(asked)
    paths = waves.write_sfts(asked.out, made, asked.label, asked.overwrite)
    _say(paths, made, sys.stderr if matched["json"] else sys.stdout)
    if matched["json"]:
        print_json(
            {"files": [str(p) for p in paths], "sfts": len(made), "bins": made.detectors[0].bins}
        )


def _sfts(asked: Made) -> SftSet:
    if asked.sfts < 1:
        raise InputError(f"--sfts is {asked.sfts}; wanted at least 1")
    names = [n.strip() for n in asked.detectors.split(",")]
    reference = asked.start if asked.ref_time is None else asked.ref_time
    signals = [signal(s, reference) for s in asked.signal or ()]
    starts = _starts(asked)
    return waves.make_data(
        dict.fromkeys(names, starts),
        asked.band,
        duration=asked.duration,
        sqrt_s=sqrt_s(asked.sqrt_s, sorted(names)),
        signals=signals,
        seed=asked.seed,
        ephemeris=waves.Ephemeris.load(asked.ephemeris) if signals else None,
    )


def _starts(asked: Made) -> NDArray[Any]:
    """GPS seconds: integers wherever they are whole."""
    check_setting("duration", asked.duration)
    step = round(asked.duration * SECOND)
    starts = asked.start + step * np.arange(asked.sfts)
    return starts / SECOND if asked.start % SECOND or step % SECOND else starts // SECOND


def _say(paths: list[Path], made: SftSet, to: Any) -> None:
    for path, d in zip(paths, made, strict=True):
        print(f"{path}: {len(d)} SFTs of {d.bins} bins", file=to)
