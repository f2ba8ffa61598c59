"""What a ladder consists of: rungs that were measured or skipped, the ladder that makes them, and
how it is shown.

It is shown as JSON for programs, as a table for people.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from lanewise.sims.common.devices import is_gpu
from lanewise.support.numerals import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One version of a kernel at one size: measured, or skipped with the reason.

    Attributes:
        name: what this version is, unique within a ladder at one size.
        bodies: elements of the run.
        seconds: median time of one run of the kernel; None when skipped.
        over: the name of the rung that `speedup` and `predicted` compare with; None for a first
        one.
        speedup: seconds of `over` / seconds of this rung.
        predicted: the same factor by the model, None where it says nothing.
        predicted_seconds: the model's time of this rung.
        paper: the same factor in the paper, for each of its machines.
        relative_error: max |x - x64| / max |x64| over the checked elements, x64 computed in float64
        by NumPy.
        skipped: why there is no time: the reason of the pass that refused, the check that failed,
        or the time that it
            would take.
        device: where it ran.
        layout: how the records lie in memory.
        plan: what differs from the neutral plan.
        extra: further numbers and words of this ladder, their own keys in the JSON.
    """

    name: str
    bodies: int
    seconds: float | None = None
    over: str | None = None
    speedup: float | None = None
    predicted: float | None = None
    predicted_seconds: float | None = None
    paper: Mapping[str, float] | None = None
    relative_error: float | None = None
    skipped: str | None = None
    device: str = "cpu"
    layout: str | None = None
    plan: str | None = None
    extra: Mapping[str, float | int | str | None] = field(
        default_factory=dict[str, float | int | str | None]
    )

    def __post_init__(self) -> None:
        if (self.seconds is None) == (self.skipped is None):
            raise ValueError(
                f"rung {self.name!r}: wanted either a time or the reason why there is none"
            )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `extra` is merged in; numbers that JSON does not have (NaN, infinity) are
        None.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "extra"}
        own["paper"] = None if self.paper is None else dict(self.paper)
        if taken := own.keys() & self.extra.keys():
            raise ValueError(
                f"rung {self.name!r}: {', '.join(sorted(taken))} cannot be an extra key"
            )
        return {name: _finite(value) for name, value in {**own, **self.extra}.items()}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a ladder when the user gives none: on a GPU and on a CPU, and the same for a
    quick run.
    """

    gpu: tuple[int, ...]
    cpu: tuple[int, ...]
    quick_gpu: tuple[int, ...]
    quick_cpu: tuple[int, ...]

    def __call__(self, device: str, quick: bool) -> tuple[int, ...]:
        """Those for a device."""
        on_gpu, on_cpu = (self.quick_gpu, self.quick_cpu) if quick else (self.gpu, self.cpu)
        return on_gpu if is_gpu(device) else on_cpu


@dataclass(frozen=True, slots=True)
class Options:
    """What a user chooses. `bodies` are the sizes, in order; `quick` asks for few repeats and the
    cheap rungs.

    worlds: radii for flocks; empty: those of the ladder. only: parts of a ladder that has some;
    empty: all. precision: of numbers, where a ladder has several.
    """

    device: str
    bodies: tuple[int, ...]
    quick: bool = False
    seed: int = 0
    worlds: tuple[float, ...] = ()
    only: tuple[str, ...] = ()
    precision: str = "f32"

    @property
    def on_gpu(self) -> bool:
        """Whether the rungs are measured on a GPU."""
        return is_gpu(self.device)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: its heading, and the text of a rung. width: in which the text takes
    several lines; None: as it is.
    """

    heading: str
    text: Callable[[Rung], str]
    width: int | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """What a picture shows as the rate of a rung: the key of an extra number, the name and size of
    the axis's unit, and the heading of the panel.
    """

    key: str = "pairs_per_second"
    text: str = "billions of pairs per second"
    unit: float = 1e9
    title: str = "Rate here"


ONE = {"bodies": "body", "elements of a matrix": "element of a matrix"}
"""Of what ladders count, where that is not the plural without its s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """A series of rungs.

    Attributes:
        name: as on the command line.
        title: one line for the table and the plot.
        source: the paper that the figures come from.
        sizes: the numbers of bodies when the user gives none, for (device, quick).
        climb: makes the rungs, one after the other, each as soon as it is known.
        columns: what the table has besides the columns of all ladders.
        summary: lines below the table: totals, shares of a bound, the paper's totals.
        elements: what the numbers of bodies count.
        rate: what a picture shows besides the factors, where rungs have it.
        expected: factors that something else than the model expects of a rung, which a picture
        shows as their own bars: what that is, by the key of an extra number.
        draw: writes the picture of (path, ladder, rungs, machine); None: bars of factors.
        parts: names of its parts, which can be climbed alone.
        precisions: of numbers that it can be climbed in.
    """

    name: str
    title: str
    source: str
    sizes: Callable[[str, bool], tuple[int, ...]]
    climb: Callable[[Options], Iterator[Rung]]
    columns: tuple[Column, ...] = ()
    summary: Callable[[list[Rung]], list[str]] = lambda rungs: []
    elements: str = "bodies"
    rate: Rate = Rate()
    expected: Mapping[str, str] = field(default_factory=dict[str, str])
    draw: Callable[[Path, Ladder, list[Rung], str], None] | None = None
    parts: tuple[str, ...] = ()
    precisions: tuple[str, ...] = ("f32",)

    def so_many(self, number: int) -> str:
        """`1 body`, `1,000 bodies`."""
        one = ONE.get(self.elements, self.elements.removesuffix("s"))
        return counted(number, one, self.elements)


NOTHING = "–"


def as_json(machine: Mapping[str, Any], ladder: Ladder, rungs: Iterable[Rung]) -> dict[str, Any]:
    """{"machine": {...}, "ladder": name, "rungs": [...]}: one list, each rung carries its number of
    bodies.
    """
    return {"machine": dict(machine), "ladder": ladder.name, "rungs": [r.as_dict() for r in rungs]}


def show(console: Console, ladder: Ladder, rungs: list[Rung]) -> None:
    """For each number of bodies print a table of its rungs, as wide as the console at most, and why
    some have no time.
    """
    width = console.width
    for bodies, same in _by_bodies(rungs).items():
        title = f"{ladder.title}: {ladder.so_many(bodies)}"
        for part in _fitting(_columns(ladder, same), same, width):
            table = _table(title, part, same)
            console.width = max(
                width,
                console.measure(table, options=console.options.update(max_width=10_000)).maximum,
            )
            console.print(table)
            console.width, title = width, ""
        for line in (*_compared_with(same), *_reasons(same)):
            console.print(line)


def _by_bodies(rungs: list[Rung]) -> dict[int, list[Rung]]:
    return {n: [r for r in rungs if r.bodies == n] for n in dict.fromkeys(r.bodies for r in rungs)}


LEAST_NAME = 16  # columns of a terminal that the names of rungs keep


def _columns(ladder: Ladder, rungs: list[Rung]) -> list[Column]:
    """Those that have something to say of these rungs, the names first."""
    columns = (*COLUMNS, *ladder.columns)
    return [NAME, *(c for c in columns if any(c.text(r) not in ("", NOTHING) for r in rungs))]


def _fitting(columns: list[Column], rungs: list[Rung], width: int) -> list[list[Column]]:
    """The columns of the tables that show all of them within a width, each after the names: one
    where they fit side by side.

    In a narrow terminal headings and names take several lines, and columns that find no room come
    in further tables: no digit is lost.
    """
    if sum(_width(c, rungs, folded=False) for c in columns) + 1 <= width:
        return [columns]
    name, *others = columns
    folded = [Column(c.heading.replace(" ", "\n"), c.text) for c in others]
    sizes = [_width(c, rungs, folded=True) for c in folded]
    longest = _width(name, rungs, folded=False)
    taken = min(longest, max(LEAST_NAME + EDGES, width // 3, width - 1 - sum(sizes)))
    parts, room = [[replace(name, width=taken - EDGES)]], width - 1 - taken
    for column, size in zip(folded, sizes, strict=True):
        if size > room and len(parts[-1]) > 1:
            parts.append([parts[0][0]])
            room = width - 1 - taken
        parts[-1].append(column)
        room -= size
    return parts


EDGES = 3  # a space on both sides, and a line


def _width(column: Column, rungs: list[Rung], *, folded: bool) -> int:
    """Of a column of a table, with its edges."""
    heading = column.heading.split("\n") if folded else [column.heading]
    return max(map(cell_len, [*heading, *(column.text(r) for r in rungs)])) + EDGES


def _table(title: str, columns: list[Column], rungs: list[Rung]) -> Table:
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        table.add_column(
            column.heading,
            justify="right" if number else "left",
            no_wrap=column.width is None,
            width=column.width,
        )
    for r in rungs:
        table.add_row(*(c.text(r) for c in columns), style="dim" if r.skipped else None)
    return table


def _compared_with(rungs: list[Rung]) -> list[str]:
    """Over which rung the factors are: a line for each such rung, the most frequent one for all
    that no other line names.
    """
    over: dict[str, list[str]] = {}
    for r in rungs:
        if r.over is not None and r.speedup is not None:
            over.setdefault(r.over, []).append(r.name)
    usual, *others = sorted(over, key=lambda name: -len(over[name])) or [""]
    lines = [f"factors are over {usual!r}"] if usual else []
    return lines + [f"over {name!r}: {', '.join(repr(n) for n in over[name])}" for name in others]


def _reasons(rungs: list[Rung]) -> list[str]:
    """One line for each reason, with all rungs that have it."""
    skipped: dict[str, list[str]] = {}
    for r in rungs:
        if r.skipped is not None:
            skipped.setdefault(r.skipped, []).append(r.name)
    return [
        f"skipped {', '.join(repr(n) for n in names)}: {reason}"
        for reason, names in skipped.items()
    ]


def seconds_text(seconds: float | None) -> str:
    """A time with three digits in a unit that suits it."""
    if seconds is None:
        return NOTHING
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{digits(seconds / size)} {unit}"
    return f"{digits(seconds / 1e-9)} ns"


def factor_text(factor: float | None) -> str:
    """A factor with three digits, or a dash."""
    return NOTHING if factor is None or not math.isfinite(factor) else digits(factor)


def digits(value: float) -> str:
    """Three significant digits; integers with their thousands marked, very small ones as
    powers of ten.
    """
    if value == 0 or 1e-3 <= abs(value) < 999.5:
        return f"{value:#.3g}".rstrip(".")
    return f"{value:,.0f}" if abs(value) >= 1 else f"{value:.1e}"


def paper_text(paper: Mapping[str, float] | None) -> str:
    """The paper's figures, its machines in order."""
    return NOTHING if not paper else " / ".join(f"{v:,g}" for v in paper.values())


NAME = Column("rung", lambda r: r.name)
COLUMNS = (
    Column("time", lambda r: "skipped" if r.skipped else seconds_text(r.seconds)),
    Column("factor", lambda r: factor_text(r.speedup)),
    Column("model", lambda r: factor_text(r.predicted)),
    Column("paper", lambda r: paper_text(r.paper)),
    Column(
        "rel. error", lambda r: NOTHING if r.relative_error is None else f"{r.relative_error:.1e}"
    ),
)


def number(rung: Rung, key: str) -> float | None:
    """An extra number of a rung, where it has one."""
    value = rung.extra.get(key)
    return float(value) if isinstance(value, (int, float)) else None


def compared(rung: Rung, base: Rung | None) -> Rung:
    """The rung with its factors over another one, measured and predicted, where both have times."""
    if base is None or base.seconds is None or rung.seconds is None:
        return rung
    before, now = base.predicted_seconds, rung.predicted_seconds
    return replace(
        rung,
        over=base.name,
        speedup=base.seconds / rung.seconds,
        predicted=before / now if before and now else None,
    )


def number_text(key: str, form: Callable[[float], str]) -> Callable[[Rung], str]:
    """The cell of a column that shows an extra number."""

    def text(rung: Rung) -> str:
        value = number(rung, key)
        return NOTHING if value is None else form(value)

    return text
