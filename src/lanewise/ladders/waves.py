"""The ladder `waves`: the F-statistic of a direction's spin-downs by the versions of a thesis, and
what it proposed.

All versions call the same kernel. The time of a rung is that of one spin-down, with its share of
what was prepared for its direction. Rungs from the fifth on have Hough maps as well: what they are
faster than is the fifth, not the F-statistic alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lanewise.ladders.run import duration, one_thread, skipped
from lanewise.ladders.rung import (
    Column,
    Ladder,
    Options,
    Rate,
    Rung,
    Sizes,
    compared,
    digits,
    number,
    number_text,
    seconds_text,
)
from lanewise.ladders.waves_data import DTERMS, THESIS, Data, size_of
from lanewise.ladders.waves_maps import MAP_VERSIONS, climb_maps
from lanewise.ladders.waves_thesis import CPU, DIRECTIONS, FIGURES, GPU, SECONDS, SOURCE, SPINS
from lanewise.ladders.waves_versions import KINDS, VERSIONS, SecondsByKind, Version
from lanewise.models import device_model, predicted
from lanewise.support.errors import DeviceError

SMALL = size_of(4 * THESIS.detectors * THESIS.frequencies).cells  # four of the stacks
TOLERANCE = 1e-4  # of the largest amplitude: sums in float32
RUNS = 3
ENOUGH = 1.0  # seconds after which a rung is not run again
LIMIT, QUICK_LIMIT = 60.0, 6.0  # seconds that a spin-down may take
RATE = Rate("templates_sfts_per_second", "billions of templates x SFTs per second", 1e9)


# Cells of (stack, detector, frequency): the thesis's; four of its stacks on a CPU, and one in a
# quick run.
ONE_STACK = (THESIS.detectors * THESIS.frequencies,)
SIZES = Sizes(gpu=(THESIS.cells,), cpu=(SMALL,), quick_gpu=ONE_STACK, quick_cpu=ONE_STACK)


def climb(options: Options) -> Iterator[Rung]:
    """The rungs at every size, each as soon as it is measured."""
    for cells in options.bodies:
        data, earlier = Data(size_of(cells), options.seed), dict[str, Rung]()
        for version in VERSIONS:
            rung = compared(measure(version, data, cells, options), earlier.get(version.over or ""))
            earlier[version.name] = rung = _over_cpu(rung, earlier)
            yield rung
        bases = {v.name: v.over or "" for v in MAP_VERSIONS}
        for rung in climb_maps(cells, options):
            earlier[rung.name] = compared(rung, earlier.get(bases[rung.name]))
            yield earlier[rung.name]


def _over_cpu(rung: Rung, earlier: dict[str, Rung]) -> Rung:
    """With the factor over one CPU thread, which is what the thesis states."""
    first = earlier.get(CPU)
    if first is None or first.seconds is None or rung.seconds is None:
        return rung
    return replace(rung, extra={**rung.extra, "over_cpu": first.seconds / rung.seconds})


def measure(version: Version, data: Data, cells: int, options: Options) -> Rung:
    """The rung of a version: checked against float64, then timed; skipped with the reason where it
    is wrong or too long.
    """
    figure = FIGURES.get(version.name)
    if version.serial:
        options = replace(options, device="cpu")
    blank = Rung(
        name=version.name,
        bodies=cells,
        device=options.device,
        skipped="not run",
        paper=None if figure is None or figure.factor is None else {GPU: figure.factor},
        extra={
            "stacks": data.size.stacks,
            "sfts": data.size.sfts,
            "detectors": data.size.detectors,
            "frequencies": data.size.frequencies,
            "calls": version.calls(data),
            "thesis": None if figure is None else figure.text,
            "thesis_where": None if figure is None else figure.where,
        },
    )
    with one_thread() if version.serial else nullcontext():
        return _measured(version, data, blank, options)


def _measured(version: Version, data: Data, blank: Rung, options: Options) -> Rung:
    try:
        if reason := _too_long(version, data, options):
            return skipped(blank, "too long", reason)
        first = _turn(version, data, 0, options.device)
    except DeviceError as refusal:
        return skipped(blank, "device", str(refusal))
    error = data.error(first.amplitudes)
    blank = replace(blank, relative_error=error)
    if not error <= TOLERANCE:
        wrong = (
            f"wrong: the relative error against float64 is {error:.1e}, and {TOLERANCE:.0e} is "
            "allowed"
        )
        return skipped(blank, "wrong", wrong)
    timed = _timed(version, data, blank, options.device)
    idle = _idle(version, data, options.device) if options.on_gpu else {}
    return replace(timed, extra={**timed.extra, **idle})


def _idle(version: Version, data: Data, device: str) -> dict[str, float | int | str | None]:
    """Threads of one of its calls that have no cell, as it is launched on a GPU."""
    if version.sample is None:
        return {}
    prepared = version.prepare(data, SecondsByKind(device))
    call = version.kernel(DTERMS).bind(*version.sample(data, prepared, device))
    compiled = call.compiled
    found = predicted(compiled.executable, compiled.environment, device_model(device))
    plan = compiled.plan
    each = (plan.block or 1, plan.targets, plan.slices)
    return idle_threads(found.details, each, math.prod(call.results[0].shape[:-1]))


def idle_threads(
    details: Mapping[str, float], plan: tuple[int, int, int], cells: int
) -> dict[str, float | int | str | None]:
    """Of a launch of so many blocks (`details`) for so many cells.

    plan: the threads of a block, the cells of a thread, and the threads that share them.
    """
    blocks = details.get("blocks")
    if blocks is None:
        return {}
    block, targets, slices = plan
    threads = round(blocks) * block
    used = -(-cells // targets) * slices
    return {"threads": threads, "idle_threads": max(0, threads - used)}


@dataclass(frozen=True, slots=True)
class _Turn:
    """A direction prepared, and one of its spin-downs computed. seconds, parts: with its share of
    what was prepared.
    """

    amplitudes: NDArray[np.complex64]
    whole: float
    seconds: float
    parts: dict[str, float]


def _turn(version: Version, data: Data, spin: int, device: str) -> _Turn:
    shared, own = SecondsByKind(device), SecondsByKind(device)
    start = time.perf_counter()
    prepared = version.prepare(data, shared)
    between = time.perf_counter()
    amplitudes = version.run(data, prepared, spin, own)
    end = time.perf_counter()
    parts = {k: shared.seconds[k] / data.size.spins + own.seconds[k] for k in KINDS}
    return _Turn(
        amplitudes, end - start, (between - start) / data.size.spins + end - between, parts
    )


def _timed(version: Version, data: Data, blank: Rung, device: str) -> Rung:
    """The median of some turns, of one that takes long alone.

    The turn that was checked is none of them: it may have compiled.
    """
    turns = [_turn(version, data, 0, device)]
    if turns[0].whole <= ENOUGH:
        turns += [_turn(version, data, n % data.size.spins, device) for n in range(1, RUNS)]
    turn = sorted(turns, key=lambda t: t.seconds)[(len(turns) - 1) // 2]
    extra = {
        **blank.extra,
        **{f"{k}_seconds": v for k, v in turn.parts.items()},
        "rest_seconds": turn.seconds - sum(turn.parts.values()),
        "runs": len(turns),
        "templates_sfts_per_second": data.size.cells * data.size.sfts / turn.seconds,
    }
    return replace(blank, skipped=None, seconds=turn.seconds, extra=extra)


def _too_long(version: Version, data: Data, options: Options) -> str | None:
    """Why a spin-down would take more than a rung gets, by a run with one stack and few
    frequencies; it compiles as well.
    """
    size = replace(data.size, stacks=1, frequencies=min(20, data.size.frequencies))
    pilot = Data(size, options.seed)
    first = 0.0
    for _ in range(2):  # the first run compiles
        start = time.perf_counter()
        version.run(
            pilot,
            version.prepare(pilot, SecondsByKind(options.device)),
            0,
            SecondsByKind(options.device),
        )
        first = time.perf_counter() - start
    total = first / version.calls(pilot) * version.calls(data)
    limit = QUICK_LIMIT if options.quick else LIMIT
    if total <= limit:
        return None
    return f"a spin-down would take about {duration(total)}, and a rung gets {duration(limit)}"


def _share(kind: str) -> Column:
    def text(rung: Rung) -> str:
        value = number(rung, f"{kind}_seconds")
        return "–" if value is None or not rung.seconds else f"{value / rung.seconds:.0%}"

    return Column(kind, text)


COLUMNS = (
    Column("over CPU", number_text("over_cpu", digits)),
    Column("idle", number_text("idle_threads", "{:,.0f}".format)),
    Column("calls", number_text("calls", "{:,.0f}".format)),
    *(_share(k) for k in (*KINDS, "rest")),
    Column("ps", number_text("templates_sfts_per_second", lambda rate: digits(1e12 / rate))),
)


def summary(rungs: list[Rung]) -> list[str]:
    """What the thesis says of each version, and its whole data by the fastest rung at its size."""
    said = {
        r.name: f"{r.name}: {r.extra['thesis']} ({r.extra['thesis_where']})"
        for r in rungs
        if r.extra.get("thesis")
    }
    lines = ["ps: picoseconds a template and SFT", *said.values()]
    whole = [r for r in rungs if r.bodies == THESIS.cells and r.seconds is not None]
    with_maps = {v.name for v in MAP_VERSIONS}
    for what, some in (
        ("the F-statistic alone", [r for r in whole if r.name not in with_maps]),
        ("with Hough maps", [r for r in whole if r.name in with_maps]),
    ):
        if some:
            best = min(some, key=lambda r: r.seconds or 0.0)
            maps = DIRECTIONS * SPINS
            lines.append(
                f"{maps} such spin-downs, all of the thesis's data, are "
                f"{seconds_text(maps * (best.seconds or 0.0))} by {best.name!r}, "
                f"{what}; its version 1 took {SECONDS:,.0f} s"
            )
    return lines


LADDER = Ladder(
    name="waves",
    title="the F-statistic of gravitational waves",
    source=SOURCE,
    sizes=SIZES,
    climb=climb,
    columns=COLUMNS,
    summary=summary,
    elements="amplitudes",
    rate=RATE,
)
