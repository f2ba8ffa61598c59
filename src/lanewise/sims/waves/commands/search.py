"""`lanewise waves run`: the hierarchical search, in work units."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from lanewise.profiling import Profile, span
from lanewise.sims import waves
from lanewise.sims.common.frame import at_work, follow, print_json, say_note
from lanewise.sims.common.options import GivenOptions
from lanewise.sims.common.profile_report import ProfileReport
from lanewise.sims.common.viewing import check_view, served
from lanewise.sims.waves.commands.arguments import require
from lanewise.sims.waves.commands.files import check_device, check_outputs, say_left_out, workers_of
from lanewise.sims.waves.commands.options import Directions, Input, InUnits, SearchGrid
from lanewise.sims.waves.commands.sky import directions
from lanewise.sims.waves.device.memory import Memory
from lanewise.sims.waves.hierarchical import COLUMNS, Candidates, middle_time
from lanewise.sims.waves.hierarchical_setup import METHODS
from lanewise.sims.waves.lost import said
from lanewise.sims.waves.refinement import follow_up
from lanewise.sims.waves.tables import write_table
from lanewise.sims.waves.units import Found, Job, Opened, Workers, forget, has_checkpoints, opened
from lanewise.sims.waves.units.origins import origins
from lanewise.support.command import INTERRUPTED
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted, numeral

FLAGS = {"freq_band": "--band"}
WHOLE = ("rank", "promoted", "templates")  # columns of integers
Rows = NDArray[np.void]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line says, understood."""

    job: Job
    out: Path
    plot: Path | None
    overwrite: bool
    follow_up: int
    kept: InUnits
    workers: Workers

    @property
    def folder(self) -> Path:
        """Of the checkpoints."""
        return self.kept.checkpoint_folder or units_folder(self.out)

    @property
    def followed(self) -> Path | None:
        """The file of candidates that are followed up."""
        return follow_up_file(self.out) if self.follow_up else None

    @property
    def files(self) -> tuple[Path | None, ...]:
        """All that are written."""
        return self.out, self.plot, self.followed


@dataclass(slots=True)
class _Run:
    """A search that is followed by a progress bar: its steps are maps."""

    search: Opened
    seconds: float
    announce: Callable[[Memory], None]
    seen: Callable[[int, Candidates], None]
    step: int = 0
    outcome: Found | None = None
    first_step: int = 0

    @property
    def steps(self) -> int:
        return self.search.steps

    def execute(self, progress: Callable[[Any], None], /) -> None:
        def report(steps: int, rows: Candidates) -> None:
            self.step += steps
            progress(self)
            self.seen(steps, rows)

        self.outcome = self.search.compute(self.seconds, report, self.announce)


def units_folder(out: Path) -> Path:
    """Where the checkpoints of a list are, if nothing else is said."""
    return out.with_name(f"{out.name}.units")


def follow_up_file(out: Path) -> Path:
    """Next to the list: top.csv, top.follow-up.csv."""
    return out.with_name(f"{out.stem}.follow-up{out.suffix}")


def run(matched: GivenOptions) -> None:
    """Search, write, say."""
    asked = _asked(matched)
    files = (*asked.files, matched["view_record"])
    report = ProfileReport(matched["profile"], matched["profile_trace"], asked.overwrite, *files)
    to, start = sys.stderr if matched["json"] else sys.stdout, time.perf_counter()
    memory: list[Memory] = []

    def announce(need: Memory) -> None:
        memory.append(need)
        if not matched["quiet"]:
            print(f"memory: {need}", file=to)

    with at_work(*files, matched["profile_trace"]):
        check_view(matched)
        outcome = _searched(asked, report.profile, announce, matched)
        followed = _write(asked, outcome, report.profile, quiet=matched["quiet"])
        seconds = time.perf_counter() - start
        summary = _summary(asked, outcome, followed, seconds, memory)
        report.finish(summary)
    _say(asked, outcome, followed, seconds, to)
    if matched["json"]:
        print_json(summary)


def _asked(matched: GivenOptions) -> _Asked:
    """Refuses what cannot be searched or written, before anything is read."""
    require(matched, "sfts", "ref_time", "freq", "freq_band", "sky", "stack", "out", flags=FLAGS)
    inputs, where, kept = matched.make(Input), matched.make(Directions), matched.make(InUnits)
    assert where.out is not None
    if where.most < 1:
        raise InputError(f"--candidates is {where.most}; wanted at least 1")
    if not 0 <= kept.checkpoint_every < math.inf:
        raise InputError(
            f"--checkpoint-every is {numeral(kept.checkpoint_every)}; wanted seconds, zero or more"
        )
    if where.method not in METHODS:
        raise InputError(f"--method is {where.method!r}; wanted demod or resamp")
    if where.follow_up < 0:
        raise InputError(
            f"--follow-up is {where.follow_up}; wanted a number of candidates, 0 for none"
        )
    device, count, gpus = workers_of(inputs.device, kept.workers, kept.scheduler)
    # else its workers have the device, and nothing here needs it
    if kept.scheduler is None or where.follow_up:
        check_device(device)
    followed = follow_up_file(where.out) if where.follow_up else None
    overwrite = where.overwrite or _goes_on(where.out, kept)
    check_outputs(where.out, where.plot, overwrite, followed)
    job = Job(
        sfts=tuple(inputs.sfts or ()),
        search=_search(matched, inputs),
        sky=tuple(directions(where.sky or ())),
        ephemeris=inputs.ephemeris,
        most=where.most,
        skip_bad=inputs.skip_bad,
        method=where.method,
        device=device,
    )
    workers = Workers(count=count, scheduler=kept.scheduler, gpus=gpus)
    return _Asked(job, where.out, where.plot, overwrite, where.follow_up, kept, workers)


def _goes_on(out: Path, kept: InUnits) -> bool:
    """Whether a search is resumed that may have written its list: it writes the same one again.

    Refuses one that has ended.
    """
    if not kept.resume or kept.checkpoint_folder is not None:
        return False
    if has_checkpoints(units_folder(out)):
        return True
    if out.exists():
        raise InputError(
            f"{out}: the search is complete, and nothing is left to resume; to search again, give "
            "--overwrite instead of --resume"
        )
    return False


def _search(matched: GivenOptions, inputs: Input) -> waves.Search:
    """What is left out has the defaults of `Search`."""
    chosen = matched.of(SearchGrid)
    low, width = chosen.pop("f1dot", (0.0, 0.0))
    return waves.Search(
        **chosen, f1dot=low, f1dot_band=width, reference=inputs.ref_time, dterms=inputs.dterms
    )


def _searched(
    asked: _Asked,
    profile: Profile | None,
    announce: Callable[[Memory], None],
    matched: GivenOptions,
) -> Found:
    """The search in its units, followed to the end; one that is stopped says how to continue."""
    kept, search = asked.kept, asked.job
    place = opened(
        search,
        asked.folder,
        units=kept.units,
        workers=asked.workers,
        resume=kept.resume,
        overwrite=asked.overwrite,
    )
    with span(profile, "search", name="units"), _going_on(asked), ExitStack() as stack:
        with said():
            one = stack.enter_context(place)
        say_left_out(one.ready.left_out)
        if (who := asked.workers.line(search)) and not matched["quiet"]:
            print(
                f"{counted(len(one.units), 'work unit', 'work units')} for {who}",
                file=sys.stderr if matched["json"] else sys.stdout,
            )
        seen = stack.enter_context(_viewed(one, matched, profile))
        run = _Run(one, kept.checkpoint_every, announce, seen)
        follow(run, "waves", _rate, quiet=matched["quiet"])
    assert run.outcome is not None
    return run.outcome


@contextmanager
def _viewed(
    search: Opened, matched: GivenOptions, profile: Profile | None
) -> Generator[Callable[[int, Candidates], None]]:
    """What is reported of maps and candidates; with --view a browser shows it. Workers continue
    whatever viewers say.
    """
    if not matched["view"]:
        yield lambda steps, rows: None
        return
    from lanewise.sims.waves.live import scene_of

    scene = scene_of(search)
    with served(scene, matched, profile, readonly=search.workers.asked) as feed:

        def seen(steps: int, rows: Candidates) -> None:
            scene.add(steps, rows)
            feed.look(scene.moment[0])

        yield seen


def _ends_within(outcome: Found) -> str:
    """What is to be known of a list that ends among candidates of one significance, as it does
    where a signal is loud.
    """
    level, most = outcome.candidates["significance"], outcome.ready.job.most
    if len(level) < most or level[0] != level[-1]:
        return ""
    return (
        f"all {most:,} candidates have the significance {level[0]:.3f}, and the list ends among "
        "those of the lowest frequency: "
        "give more --candidates, or a higher --threshold, to tell them apart"
    )


@contextmanager
def _going_on(asked: _Asked) -> Generator[None]:
    """A search that is stopped says how it continues."""
    try:
        yield
    except KeyboardInterrupt:
        if not has_checkpoints(asked.folder):  # nothing was begun
            raise
        print(
            f"stopped; the checkpoints are in {asked.folder}: the same command with --resume "
            "continues it",
            file=sys.stderr,
        )
        raise typer.Exit(INTERRUPTED) from None


def _rate(now: _Run) -> str:
    return f"{now.step:,} of {now.steps:,} maps"


def _write(asked: _Asked, outcome: Found, profile: Profile | None, *, quiet: bool) -> Rows | None:
    """The list, the picture, and the candidates that are followed up; then checkpoints have done
    their service.
    """
    with span(profile, "output", name="table"):
        write_table(
            asked.out, {name: outcome.candidates[name] for name in COLUMNS}, asked.overwrite
        )
    say_note(_ends_within(outcome))
    if asked.plot is not None:
        with span(profile, "output", name="picture"):
            _draw(asked.plot, outcome)
    followed = None
    if asked.followed is not None:
        with span(profile, "follow-up", name="stages"):
            followed = _followed(asked, outcome, quiet=quiet)
        names = followed.dtype.names or ()
        columns = {n: followed[n].astype(np.int64) if n in WHOLE else followed[n] for n in names}
        with span(profile, "output", name="table"):
            write_table(asked.followed, columns, asked.overwrite)
    if asked.kept.checkpoint_folder is None:
        forget(asked.folder, outcome.units)
    return followed


def _followed(asked: _Asked, outcome: Found, *, quiet: bool) -> Rows:
    """The best candidates, refined; a progress bar counts them."""
    from rich.console import Console
    from rich.progress import Progress

    ready, console = outcome.ready, Console(stderr=True)
    with Progress(console=console, disable=quiet or not console.is_terminal, transient=True) as bar:
        task = bar.add_task("follow-up", total=asked.follow_up)
        return follow_up(
            ready.grids,
            ready.ephemeris,
            outcome.candidates,
            asked.follow_up,
            directions=len(asked.job.sky),
            device=asked.job.device,
            report=lambda done: bar.advance(task, done),
        )


def _draw(path: Path, outcome: Found) -> None:
    """The map of the most significant candidate; of several the one with the largest mean 2F."""
    from lanewise.sims.waves.view import draw_map

    ready, rows = outcome.ready, outcome.candidates
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


def _summary(
    asked: _Asked, outcome: Found, followed: Rows | None, seconds: float, memory: list[Memory]
) -> dict[str, Any]:
    best: Candidates = outcome.candidates
    grids = outcome.ready.grids
    return {
        "maps": outcome.maps,
        "units": len(outcome.units),
        "directions": len(asked.job.sky),
        "stacks": grids.data.stacks,
        "seconds": seconds,
        "candidates": len(best),
        "reference": middle_time(grids),
        "best": {name: float(best[name][0]) for name in COLUMNS},
        "out": str(asked.out),
        "method": asked.job.method,
        "device": asked.job.device,
        "memory": memory[0].total if memory else None,
        "plot": None if asked.plot is None else str(asked.plot),
        "follow_up": None if followed is None else _rows(asked, followed),
    }


def _rows(asked: _Asked, followed: Rows) -> dict[str, Any]:
    names = followed.dtype.names or ()
    return {
        "out": str(asked.followed),
        "candidates": [dict(zip(names, r, strict=True)) for r in followed.tolist()],
    }


def _say(asked: _Asked, outcome: Found, followed: Rows | None, seconds: float, to: Any) -> None:
    grids, best, job = outcome.ready.grids, outcome.candidates, asked.job
    maps = "1 map" if outcome.maps == 1 else f"{outcome.maps:,} maps"
    what = f"{maps} of {grids.frequencies:,} frequencies and {len(grids.residuals)} spin-downs"
    print(f"{grids.data}", file=to)
    print(f"{job.method} on {job.device}: {what} in {seconds:.3f} s", file=to)
    print(
        f"most significant: {best['significance'][0]:z.3f} at {best['freq'][0]:.6f} Hz (GPS "
        f"{middle_time(grids):.0f}); list in {asked.out}",
        file=to,
    )
    if followed is None:
        return
    first = followed[0]
    print(
        f"followed up: {len(followed)} apart, {int(followed['promoted'].sum())} promoted; largest "
        f"2F {first['twoF']:.1f} at "
        f"{first['freq']:.8f} Hz, false alarm {first['false_alarm']:.2g}; in {asked.followed}",
        file=to,
    )
