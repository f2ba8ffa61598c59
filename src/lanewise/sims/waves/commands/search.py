"""`lanewise waves run`: the hierarchical search, in work units."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import InputError
from lanewise.io.claims import claimed
from lanewise.profiling import Profile, span
from lanewise.runtime.compile_workers import side_by_side
from lanewise.sims import waves
from lanewise.sims.common.frame import Product, follow, print_json, say_note
from lanewise.sims.common.options import Given
from lanewise.sims.common.profile import ProfileReport
from lanewise.sims.waves.commands.arguments import require
from lanewise.sims.waves.commands.files import check_device, check_outputs, say_left_out
from lanewise.sims.waves.commands.options import Directions, Grid, Input, InUnits
from lanewise.sims.waves.commands.sky import directions
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.hierarchical import COLUMNS, METHODS, Candidates, middle_time
from lanewise.sims.waves.tables import write_table
from lanewise.sims.waves.units import Found, Job, Opened, Workers, forget, opened
from lanewise.sims.waves.units.origins import origins

FLAGS = {"freq_band": "--band"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line says, understood."""

    job: Job
    out: Path
    plot: Path | None
    overwrite: bool
    kept: InUnits

    @property
    def folder(self) -> Path:
        """Of the checkpoints."""
        return self.kept.checkpoint_folder or self.out.with_name(f"{self.out.name}.units")


@dataclass(frozen=True, slots=True)
class _Output:
    """What `Followed` asks for."""

    out: Path | None = None


@dataclass(slots=True)
class _Run:
    """A search that is followed by a progress bar: its steps are maps."""

    search: Opened
    seconds: float
    announce: Callable[[Memory], None]
    step: int = 0
    found: Found | None = None
    note: str = ""
    first_step: int = 0
    output: _Output = field(default_factory=_Output)

    @property
    def steps(self) -> int:
        return self.search.steps

    def execute(self, progress: Callable[[Any], None], /) -> None:
        def report(steps: int) -> None:
            self.step += steps
            progress(self)

        self.found = self.search.compute(self.seconds, report, self.announce)


def run(matched: Given) -> None:
    """Search, write, say."""
    asked = _asked(matched)
    report = ProfileReport(matched["profile"], matched["profile_trace"], asked.overwrite, asked.out, asked.plot)
    to, start = sys.stderr if matched["json"] else sys.stdout, time.perf_counter()
    memory: list[Memory] = []

    def announce(found: Memory) -> None:
        memory.append(found)
        if not matched["quiet"]:
            print(f"memory: {found}", file=to)

    with side_by_side(), claimed((asked.out, asked.plot, matched["profile_trace"])) as notes:
        for note in notes:
            say_note(note)
        found = _searched(asked, report.profile, announce, quiet=matched["quiet"])
        _write(asked, found, report.profile)
        seconds = time.perf_counter() - start
        summary = _summary(asked, found, seconds, memory)
        report.finish(summary)
    _say(asked, found, seconds, to)
    if matched["json"]:
        print_json(summary)


def _asked(matched: Given) -> _Asked:
    """Refuses what cannot be searched or written, before anything is read."""
    require(matched, "sfts", "ref_time", "freq", "freq_band", "sky", "stack", "out", flags=FLAGS)
    given, where, kept = matched.make(Input), matched.make(Directions), matched.make(InUnits)
    assert where.out is not None
    if where.most < 1:
        raise InputError(f"--candidates is {where.most}; wanted at least 1")
    if not 0 <= kept.checkpoint_every < math.inf:
        raise InputError(f"--checkpoint-every is {kept.checkpoint_every:g}; wanted seconds, zero or more")
    if where.method not in METHODS:
        raise InputError(f"--method is {where.method!r}; wanted demod or resamp")
    if kept.scheduler is None:  # else its workers have the device
        check_device(given.device)
    check_outputs(where.out, where.plot, where.overwrite)
    job = Job(
        sfts=tuple(given.sfts or ()), search=_search(matched, given), sky=tuple(directions(where.sky or ())), ephemeris=given.ephemeris,
        most=where.most, skip_bad=given.skip_bad, method=where.method, device=given.device,
    )  # fmt: skip
    return _Asked(job, where.out, where.plot, where.overwrite, kept)


def _search(matched: Given, given: Input) -> waves.Search:
    """What is left out has the defaults of `Search`."""
    chosen = matched.of(Grid)
    low, width = chosen.pop("f1dot", (0.0, 0.0))
    return waves.Search(**chosen, f1dot=low, f1dot_band=width, reference=given.ref_time, dterms=given.dterms)


def _searched(asked: _Asked, profile: Profile | None, announce: Callable[[Memory], None], *, quiet: bool) -> Found:
    """The search in its units, followed to the end; one that is stopped says how to go on."""
    product: Product[_Run] = Product("waves", lambda _: "waves", _rate, lambda _: {}, lambda _, __: None)
    workers = Workers(count=asked.kept.workers, scheduler=asked.kept.scheduler)
    kept, search = asked.kept, asked.job
    place = opened(
        search, asked.folder, units=kept.units, workers=workers, resume=kept.resume, overwrite=asked.overwrite
    )
    with span(profile, "search", name="units"), _going_on(asked), place as one:
        say_left_out(one.ready.left_out)
        run = _Run(one, kept.checkpoint_every, announce)
        follow(product, run, quiet=quiet)
    assert run.found is not None
    return run.found


@contextmanager
def _going_on(asked: _Asked) -> Generator[None]:
    """A search that is stopped says how it goes on."""
    try:
        yield
    except KeyboardInterrupt:
        print(
            f"stopped; the checkpoints are in {asked.folder}: the same command with --resume goes on", file=sys.stderr
        )
        raise


def _rate(now: _Run) -> str:
    return f"{now.step:,} of {now.steps:,} maps"


def _write(asked: _Asked, found: Found, profile: Profile | None) -> None:
    """The list and the picture; then checkpoints have done their service."""
    with span(profile, "output", name="table"):
        write_table(asked.out, {name: found.candidates[name] for name in COLUMNS}, asked.overwrite)
    if asked.plot is not None:
        with span(profile, "output", name="picture"):
            _draw(asked.plot, found)
    if asked.kept.checkpoint_folder is None:
        forget(asked.folder, found.units)


def _draw(path: Path, found: Found) -> None:
    """The map of the most significant candidate; of several the one with the largest mean 2F."""
    from lanewise.sims.waves.view import draw_map

    ready, rows = found.ready, found.candidates
    leading = rows[rows["significance"] == rows["significance"][0]]
    row = leading[int(np.argmax(leading["twoF"]))]
    origin = next(origins(ready, row, (0, len(ready.job.sky)), (0, len(ready.grids.f1dot))))
    maps = waves.hough_maps(
        ready.grids,
        ready.ephemeris,
        *origin.patch.centre,
        origin.f1dot,
        device=ready.job.device,
        method=ready.job.method,
    )
    draw_map(path, maps)


def _summary(asked: _Asked, found: Found, seconds: float, memory: list[Memory]) -> dict[str, Any]:
    best: Candidates = found.candidates
    grids = found.ready.grids
    return {
        "maps": found.maps, "units": len(found.units), "directions": len(asked.job.sky), "stacks": grids.data.stacks, "seconds": seconds,
        "candidates": len(best), "reference": middle_time(grids), "best": {name: float(best[name][0]) for name in COLUMNS},
        "out": str(asked.out), "method": asked.job.method, "device": asked.job.device, "memory": memory[0].total if memory else None,
        "plot": None if asked.plot is None else str(asked.plot),
    }  # fmt: skip


def _say(asked: _Asked, found: Found, seconds: float, to: Any) -> None:
    grids, best, job = found.ready.grids, found.candidates, asked.job
    maps = "1 map" if found.maps == 1 else f"{found.maps:,} maps"
    what = f"{maps} of {grids.frequencies:,} frequencies and {len(grids.residuals)} spin-downs"
    print(f"{grids.data}", file=to)
    print(f"{job.method} on {job.device}: {what} in {seconds:.3f} s", file=to)
    print(
        f"most significant: {best['significance'][0]:.3f} at {best['freq'][0]:.6f} Hz (GPS {middle_time(grids):.0f}); list in {asked.out}",
        file=to,
    )
