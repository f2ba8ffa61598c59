"""A table pass by pass over the naive kernels of the ladder `compiler`: to how many of them each
optimisation applies, what it gains there, how long its code is, and what it refuses.

    python -m bench.passes > bench/results/passes.md

The criteria are those of J. Wagner's study of automatic optimisation: use cases, efficiency,
difficulty, and error cases. Nothing is run and no GPU is needed: gains are predicted for an NVIDIA
H200, of the default plan with the optimisation over the same plan without it; for kernels that do
without it, of the best value that the rules know.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import lanewise
from lanewise.compiler.optimisations import OPTIMISATIONS
from lanewise.explanation.offline import compile_offline
from lanewise.explanation.report import Row
from lanewise.ladders.compiler_problems import BENCHMARKS, Benchmark

ARCH, SIZE = "sm_90", 1024
SOURCE = Path(lanewise.__file__).parent
MODULES: Mapping[str, tuple[str, ...]] = {
    "rsqrt": ("passes/reciprocal_square_root.py",),
    "fma": ("passes/fma_rearrangement.py",),
    "fission": ("passes/independent_loops.py",),
    "branches": ("passes/points/sides.py",),
    "slices": ("passes/loop_sharing.py", "passes/shared_loops.py", "passes/sharing_threads.py"),
    "parts": ("passes/loop_splitting.py",),
    "panel": ("passes/panels.py",),
    "tile": (
        "passes/points/staging.py", "passes/points/tiles.py", "passes/points/tile_loops.py",
        "passes/points/bringing.py",
    ),
    "targets": ("passes/points/merging.py", "passes/points/shape.py"),
    "adjacent": ("passes/points/sharing.py",),
    "unroll": ("passes/points/unrolling.py",),
    "block": ("passes/points/mapping.py",),
    "registers": ("passes/register_cap.py",),
    "uniforms": ("passes/uniform_parameters.py",),
}  # fmt: skip
"""The code of an optimisation of threadwise kernels; of others it is a few lines of these."""


@dataclass(frozen=True)
class PassRow:
    """An optimisation: kernels whose default plan has it, with the predicted gain; those that it
    would make faster still; and why it is not there, with the number of kernels.
    """

    name: str
    field: str
    gains: tuple[float, ...]
    missed: Mapping[str, float]
    lines: int | None
    refused: Mapping[str, int]
    used: tuple[str, ...]


def rows_of(benchmark: Benchmark, size: int = SIZE) -> list[Row]:
    """The explanation of the default plan of a benchmark, for matrices of size x size."""
    shapes: dict[str, Any] = dict(benchmark.shapes(size))
    arrays = {n: np.broadcast_to(np.float32(0), shape) for n, shape in shapes.items()}
    points = benchmark.points
    shapes["grid"] = shapes[benchmark.result] if points is None else points(arrays)
    made = compile_offline(benchmark.kernel, size, "cuda", arch=ARCH, shapes=shapes)
    rows = made.explain(measure_resources=False).rows
    return [r for r in rows if r.place == "here" and r.field != "layout"]


def table(found: Mapping[str, Sequence[Row]]) -> list[PassRow]:
    """A row for each optimisation, of the rows of each kernel."""
    by_field: dict[str, dict[str, Row]] = defaultdict(dict)
    for kernel, rows in found.items():
        for row in rows:
            by_field[row.field][kernel] = row
    return [
        _pass_row(o.name, o.field, by_field[o.field]) for o in OPTIMISATIONS if o.field in by_field
    ]


def _pass_row(name: str, field: str, rows: Mapping[str, Row]) -> PassRow:
    applied = {k: r for k, r in rows.items() if r.applied}
    others = {k: r for k, r in rows.items() if not r.applied}
    missed = {k: r.predicted for k, r in others.items() if (r.predicted or 0) > 1.05}
    modules = MODULES.get(field)
    return PassRow(
        name,
        field,
        tuple(r.predicted for r in applied.values() if r.predicted is not None),
        {k: p for k, p in missed.items() if p is not None},
        None if modules is None else sum(_lines(SOURCE / m) for m in modules),
        Counter(r.reason for r in others.values() if r.predicted is None),
        tuple(applied),
    )


def _lines(path: Path) -> int:
    """Lines of code: neither empty nor comments nor docstrings of modules."""
    text = path.read_text(encoding="utf-8").split('"""', 2)[-1]
    return sum(bool(s := line.strip()) and not s.startswith("#") for line in text.splitlines())


def as_markdown(rows: Iterable[PassRow], kernels: Sequence[str]) -> str:
    """The page."""
    lines = [
        "# Pass by pass",
        "",
        f"The {len(kernels)} naive kernels of `lanewise ladder compiler` for {SIZE} x {SIZE}, by the"
        " model of an NVIDIA H200.",
        "`python -m bench.passes` writes this page; nothing is run for it.",
        "",
        "- used: kernels whose default plan has it; gain: with it over without it, as the geometric"
        " mean, and the most",
        "- faster still: kernels that the model says it would make faster, with the best value",
        "- lines: of its code; where none are named it is a few lines of the others",
        "- refused: the reason of the pass, and of how many kernels",
        "",
        "| optimisation | used | gain | faster still | lines | refused |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_line(r) for r in rows]
    return "\n".join(lines) + "\n"


def _line(r: PassRow) -> str:
    gain = ""
    if r.gains:
        mean = math.prod(r.gains) ** (1 / len(r.gains))
        gain = f"{mean:.2f}, {max(r.gains):.2f}"
    missed = ", ".join(f"{k} {p:.2f}" for k, p in r.missed.items())
    refused = "; ".join(f"{why} ({n})" for why, n in Counter(r.refused).most_common())
    used = f"{len(r.used)}: {', '.join(r.used)}" if r.used else "0"
    lines = "" if r.lines is None else str(r.lines)
    cells = (f"{r.name} (`{r.field}`)", used, gain, missed, lines, refused.replace("|", "\\|"))
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Print the page."""
    found = {b.name: rows_of(b) for b in BENCHMARKS}
    print(as_markdown(table(found), list(found)), end="")


if __name__ == "__main__":
    main()
