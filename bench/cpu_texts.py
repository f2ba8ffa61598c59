"""The two languages of kernels for a CPU, Python for Numba and LLVM's own: what compiling takes, and the run times of every kernel.

    LANEWISE_THREADS=1 python -m bench.cpu_texts [PART OF A NAME ...]
Workloads of all patterns run as users call them, in an empty cache. Each of their kernels is compiled in both languages, and runs in
both, in turns, on the same memory, which is what it was before each run; the results are compared bit by bit. Prints a table: seconds of
processor time to compile, and the median of the ratios Python / LLVM of pairs of runs (above 1: LLVM's is faster).
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lanewise as lw
from bench.gpu_threadwise import demosaic, filter3, laplace, matmul, matvec, maxima, outer, softmax
from lanewise.emit.llvm import emit_llvm
from lanewise.emit.numba import emit_numba
from lanewise.launch import executable, kept_programs
from lanewise.runtime import cpu, llvm
from tests.corpus import CASES, LAYOUTS
from tests.harness import Input

SECONDS, ROUNDS = 0.6, 401  # of a kernel's rounds together, and how many pairs of runs at most
RESTORED = 1 << 27  # bytes: larger memory is not put back, and the results are not compared

Array = np.ndarray[Any, Any]


@dataclass
class Row:
    """What was found of one kernel."""

    name: str
    pattern: str
    compiled: tuple[float, float] = (0.0, 0.0)
    ratios: list[float] = field(default_factory=list[float])
    seconds: float = 0.0
    same: bool = True


ROWS: list[Row] = []
TEXTS: dict[str, tuple[str, str]] = {}  # LLVM's text and the pattern, by the code of Python's
WORKLOAD = [""]


class Both:
    """A kernel in both languages; its first long run in each workload is measured."""

    def __init__(self, name: str, pattern: str, one: Any, other: Any) -> None:
        self.name, self.pattern, self.one, self.other = name, pattern, one, other
        self.rows: dict[str, Row] = {}

    @property
    def row(self) -> Row:
        """What was found in this workload."""
        if WORKLOAD[0] not in self.rows:
            ROWS.append(Row(f"{WORKLOAD[0]}: {self.name}", self.pattern))
            self.rows[WORKLOAD[0]] = ROWS[-1]
        return self.rows[WORKLOAD[0]]

    def __call__(self, *arguments: Any) -> None:
        begin, end = arguments[-2:]
        if len(self.rows) < 2 and not self.row.compiled[0]:
            self.row.compiled = (
                _processor_time(lambda: self.one(*arguments[:-2], 0, 0)),
                _processor_time(self.other.load),
            )
        if begin == end or self.row.ratios:
            self.one(*arguments)
            return
        arrays = [a for a in arguments if isinstance(a, np.ndarray)]
        small = sum(a.nbytes for a in arrays) < RESTORED
        before = [a.copy() for a in arrays] if small else []
        runs = self.one, self.other
        found: list[list[bytes]] = []
        for run in runs:  # and are warm
            self._restore(arrays, before)
            run(*arguments)
            found.append([a.tobytes() for a in arrays] if small else [])
        self.row.same = found[0] == found[1]
        other = self.other.function
        calls: tuple[Callable[[], object], ...] = (
            lambda: self.one(*arguments),
            lambda: other(*arguments),
        )
        ends = time.perf_counter() + SECONDS
        times: list[float] = []
        while len(self.row.ratios) < ROUNDS and (time.perf_counter() < ends or len(times) < 5):
            pair = [0.0, 0.0]
            order = (0, 1) if len(times) % 2 else (1, 0)
            for which in order:
                self._restore(arrays, before)
                start = time.perf_counter()
                calls[which]()
                pair[which] = time.perf_counter() - start
            times.append(pair[0])
            self.row.ratios.append(pair[0] / pair[1])
        self.row.seconds = statistics.median(times)

    @staticmethod
    def _restore(arrays: list[Array], before: list[Array]) -> None:
        for a, b in zip(arrays, before, strict=False):
            if a.flags.writeable:
                a[...] = b


def _processor_time(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def watch() -> None:
    """Let every kernel that is loaded from now on be both."""
    generated, load = executable.generated_text, cpu.load_kernel

    def generated_text(
        reference: Any, plan: Any, kernel: Any, device: str, *, locations: bool
    ) -> str:
        if device != "cpu" or locations:
            return generated(reference, plan, kernel, device, locations=locations)
        options: dict[str, Any] = {
            "fast_math": plan.fast_math,
            "vector_bits": plan.vector_bits,
            "locations": False,
        }
        text = emit_numba(kernel, "both", **options)
        TEXTS[cpu.code_of(text)] = emit_llvm(kernel, "both", **options), kernel.pattern.name
        return text

    def load_kernel(text: str, name: str) -> Any:
        kernel, other = load(text, name), TEXTS.get(cpu.code_of(text))
        if other is None:
            return kernel
        return Both(
            name, other[1], kernel, llvm.LlvmKernel(other[0], name, cpu.content_key(other[0]))
        )

    executable.generated_text = kept_programs.generated_text = generated_text  # type: ignore[assignment]
    cpu.load_kernel = load_kernel
    kept_programs.entry_name = lambda *_: None  # type: ignore[assignment]


def f32(*shape: int) -> Array:
    return np.random.default_rng(1).random(shape, np.float32)


def _case(c: Any, layout: str, n: int, plan: lw.Plan | None) -> Callable[[], None]:
    def run() -> None:
        given = Input(c, n, seed=1)
        c.kernel.bind(*given.records(LAYOUTS[layout]), **given.arrays, **c.values, plan=plan)()

    return run


def corpus() -> dict[str, Callable[[], None]]:
    """The kernels of the tests' corpus, in three layouts."""
    made: dict[str, Callable[[], None]] = {}
    for c in CASES:
        for layout in ("SoA", "AoS", "SoAoAS"):
            n = 2000 if c.pairwise else 20_000
            made[f"{c.name} {layout}"] = _case(c, layout, n, None)
        if c.pairwise:
            made[f"{c.name} plain"] = _case(c, "SoA", 2000, lw.Plan(targets=1))
        else:
            made[f"{c.name} large"] = _case(c, "SoA", 2_000_000, None)
            made[f"{c.name} small"] = _case(c, "SoA", 64, None)
    return made


@lw.threadwise
def smooth(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], c: lw.Array2[lw.f32]):
    h, w = a.shape
    if y == 0 or x == 0 or y >= h - 1 or x >= w - 1:
        c[y, x] = a[y, x]
        return
    c[y, x] = a[y, x] + 0.2 * (a[y - 1, x] + a[y + 1, x] + a[y, x - 1] + a[y, x + 1] - 4 * a[y, x])


@lw.threadwise
def counted(i: lw.index, at: lw.Array1[lw.i32], counts: lw.Array1[lw.i64]):
    lw.scatter_add(counts, at[i], 1)


@lw.threadwise
def summed(i: lw.index, at: lw.Array1[lw.i32], v: lw.Array1[lw.f32], sums: lw.Array1[lw.f32]):
    lw.scatter_add(sums, at[i], v[i])


def threadwise() -> dict[str, Callable[[], None]]:
    """Naive array kernels by their default plans."""

    def stencil(n: int) -> Callable[[], None]:
        return lambda: smooth(a=f32(n, n), c=f32(n, n), grid=(n, n))

    rng = np.random.default_rng(2)
    places = rng.integers(0, 1000, 200_000, np.int32)
    return {
        **{f"stencil {n}": stencil(n) for n in (130, 500, 1024, 4099)},
        "matmul 512": lambda: matmul(
            a=f32(512, 512), b=f32(512, 512), c=f32(512, 512), grid=(512, 512)
        ),
        "matvec": lambda: matvec(a=f32(2048, 2048), x=f32(2048), c=f32(2048), grid=2048),
        "outer": lambda: outer(u=f32(2048), v=f32(2048), c=f32(2048, 2048), grid=(2048, 2048)),
        "softmax": lambda: softmax(a=f32(1024, 1024), c=f32(1024, 1024), grid=1024),
        "filter3": lambda: filter3(a=f32(1026, 1026), c=f32(1024, 1024), grid=(1024, 1024)),
        "demosaic": lambda: demosaic(raw=f32(1026, 1026), green=f32(1024, 1024), grid=(1024, 1024)),
        "maxima": lambda: maxima(a=f32(1026, 1026), c=f32(1024, 1024), grid=(1024, 1024)),
        "laplace": lambda: laplace(
            a=f32(128, 128, 128), c=f32(128, 128, 128), grid=(128, 128, 128)
        ),
        "counts": lambda: counted(at=places, counts=np.zeros(1000, np.int64), grid=len(places)),
        "sums": lambda: summed(at=places, v=f32(200_000), sums=f32(1000), grid=len(places)),
    }


@lw.record
class Body:
    """A mass somewhere."""

    position: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    inv = lw.rsqrt(lw.dot(d, d) + softening2)
    return source.mass * inv**3 * d


def searches() -> dict[str, Callable[[], None]]:
    """Pairs over search structures."""

    def run(search: Any, n: int) -> Callable[[], None]:
        def work() -> None:
            bodies = Body.array(position=f32(n, 3), mass=f32(n))
            pull.using(search)(bodies, bodies, softening2=1e-4)

        return work

    return {
        "neighbours": run(lw.Neighbors(radius=0.05), 20_000),
        "nearest": run(lw.Nearest(k=5, radius=0.1), 10_000),
        "grid": run(lw.StaticGrid(radius=0.05), 20_000),
        "tree": run(lw.Tree(theta=0.6, order=3), 20_000),
    }


def flows() -> dict[str, Callable[[], None]]:
    """Steps of flows and flocks."""

    def lbm(*arguments: str) -> Callable[[], None]:
        def work() -> None:
            from lanewise.cli.main import app

            with tempfile.TemporaryDirectory() as folder:
                app(["lbm", "run", *arguments, "--out", f"{folder}/a.h5"], standalone_mode=False)

        return work

    return {
        "cavity": lbm("cavity", "--re", "100", "--size", "257", "--steps", "20"),
        "karman": lbm("karman", "--re", "100", "--size", "24", "--steps", "20"),
        "sphere": lbm("sphere", "--re", "50", "--size", "10", "--steps", "10"),
    }


def main() -> None:
    os.environ["LANEWISE_CACHE_DIR"] = tempfile.mkdtemp(prefix="lanewise-texts-")
    os.environ["LANEWISE_TUNED"] = "off"
    watch()
    wanted = sys.argv[1:]
    for name, work in (corpus() | threadwise() | searches() | flows()).items():
        if wanted and not any(w in name for w in wanted):
            continue
        WORKLOAD[0] = name
        try:
            work()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    print("| kernel | pattern | compile Python | LLVM | run, ms | Python / LLVM | bits |")
    print("|---|---|---|---|---|---|---|")
    for r in ROWS:
        if not r.ratios and not r.compiled[0]:
            continue
        ratio = f"{statistics.median(r.ratios):.2f}" if r.ratios else ""
        same = "" if not r.ratios else "same" if r.same else "differ"
        one, other = r.compiled
        print(
            f"| {r.name} | {r.pattern} | {one:.3f} | {other:.3f} | {1e3 * r.seconds:.3f} | {ratio} | {same} |"
        )
    for pattern in dict.fromkeys(r.pattern for r in ROWS):
        rows = [r for r in ROWS if r.pattern == pattern]
        ratios = [statistics.median(r.ratios) for r in rows if r.ratios]
        compiled = [statistics.median(r.compiled[n] for r in rows if r.compiled[0]) for n in (0, 1)]
        least = (
            f"{min(ratios):.2f} to {max(ratios):.2f}, median {statistics.median(ratios):.2f}"
            if ratios
            else "not run"
        )
        print(
            f"{pattern}: {len(rows)} kernels, compile {compiled[0]:.3f} and {compiled[1]:.3f} s, ratio {least}"
        )


if __name__ == "__main__":
    main()
