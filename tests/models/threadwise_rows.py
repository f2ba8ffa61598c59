"""The rows of bench/results about naive array kernels, as programs for shapes of arrays: nothing is allocated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from bench import gpu_threadwise
from lanewise.compiler.default_plans import complete_plan
from lanewise.compiler.pipeline import Program, build_program
from lanewise.compiler.work import describe_work
from lanewise.ir import nodes as ir
from lanewise.ir.names import WORK, extent_of, length_of
from lanewise.language.target import Machine
from lanewise.launch.shaped_arrays import NARROW
from lanewise.patterns.threadwise.build import build_kernel
from lanewise.patterns.threadwise.kernel import Threadwise
from lanewise.planning.plan import NEUTRAL, Plan
from tests.models.measured import RESULTS, plan_of

Shapes = Mapping[str, tuple[int, ...]]
N, M = 4096, 16384
GPU = Machine("cuda", 132, copies=True)


@dataclass(frozen=True)
class Shaped:
    """A threadwise kernel over arrays of these shapes and a grid, with the plan of a row: `wish` is completed, `whole`
    is not.
    """

    name: str
    kernel: Threadwise
    shapes: Shapes
    grid: tuple[int, ...]
    wish: Plan
    whole: bool
    seconds: float
    machine: Machine = GPU

    def __str__(self) -> str:
        return self.name

    @property
    def environment(self) -> dict[str, int]:
        """The counts of a call."""
        found = {extent_of(i): n for i, n in zip(self.kernel.signature.indices, self.grid, strict=True)}
        found |= {length_of(name, d): n for name, s in self.shapes.items() for d, n in enumerate(s)}
        return {**found, WORK: max(n for s in self.shapes.values() for n in s)}

    def reference(self) -> ir.Kernel:
        wide = any(n > NARROW for s in self.shapes.values() for n in s)
        multiples = tuple(4 if s[-1] % 4 == 0 else 2 if s[-1] % 2 == 0 else 1 for s in self.shapes.values())
        on_gpu = self.machine is GPU
        variant = (wide, True, multiples) if on_gpu else (wide, True)
        classified: Any = SimpleNamespace(variant=variant, device="cuda" if on_gpu else "cpu")
        return build_kernel(self.kernel.lowered, self.kernel.signature, classified)

    def program(self) -> Program:
        reference, points = self.reference(), 1
        for n in self.grid:
            points *= n
        if self.whole:
            plan = self.wish.filled(NEUTRAL)
        else:
            work = describe_work(reference, points, self.machine.target)
            plan = complete_plan(self.wish, self.machine, work)
        return build_program(reference, plan, self.machine.target.name)


def _square(n: int, *names: str, edge: int = 0) -> dict[str, tuple[int, ...]]:
    return {**dict.fromkeys(names[:-1], (n + edge, n + edge)), names[-1]: (n, n)}


def _cube(n: int, edge: int) -> dict[str, tuple[int, ...]]:
    return {"a": (n + edge,) * 3, "c": (n,) * 3}


def _window(k: int) -> dict[str, tuple[int, ...]]:
    return {"a": (N + k - 1, N + k - 1), "f": (k, k), "c": (N, N)}


# As `bench/gpu_threadwise.py` makes them: the grid is that of the last array where it says nothing else.
SHAPES: dict[str, tuple[Shapes, tuple[int, ...] | None]] = {
    "matmul 4096": (_square(N, "a", "b", "c"), None),
    "matmul 8192": (_square(2 * N, "a", "b", "c"), None),
    "matrix-vector 16384": ({"a": (M, M), "x": (M,), "c": (M,)}, None),
    "transposed matrix-vector 16384": ({"a": (M, M), "x": (M,), "c": (M,)}, None),
    "sum 16384": ({"a": (M, M)}, None),
    "softmax 65536 x 4096": ({"a": (65536, N), "c": (65536, N)}, (65536,)),
    "transpose 4096": (_square(N, "a", "c"), None),
    "transpose 16384": (_square(M, "a", "c"), None),
    "filter 3x3": (_square(N, "a", "c", edge=2), None),
    "stencil 512": (_cube(512, 2), None),
    "laplace 512": (_cube(512, 0), None),
    "outer 16384": ({"u": (M,), "v": (M,), "c": (M, M)}, None),
    "convolve 16": (_window(16), None),
    "convolve 32": (_window(32), None),
    "batched 16": (dict.fromkeys("abc", (100_000, 16, 16)), None),
    "triangular solve 4096": (_square(N, "a", "b", "c"), (N,)),
    "demosaic": (_square(N, "raw", "green", edge=2), None),
    "histogram 1e6": ({"a": (100_000_000,), "counts": (1_000_000,)}, (100_000_000,)),
    "maxima": (_square(N, "a", "c", edge=2), None),
}


def rows() -> Iterator[Shaped]:
    """Every version by lanewise in gpu_threadwise.md."""
    kernels = {b.name: b.kernel for b in gpu_threadwise.BENCHMARKS}
    for section in (RESULTS / "gpu_threadwise.md").read_text(encoding="utf-8").split("\n## ")[1:]:
        name = section.partition("\n")[0]
        if name not in SHAPES:
            continue
        shapes, grid = SHAPES[name]
        for text, milliseconds in re.findall(r"^\| (.*?) \(built in .*?\| ([\d.]+) \|$", section, re.MULTILINE):
            found = re.match(r"(by default|naive): ", text)
            wish = plan_of(text[found.end() :] if found else text)
            yield Shaped(
                f"{name}, {text}", kernels[name], shapes, grid or list(shapes.values())[-1], wish, found is not None,
                float(milliseconds) / 1e3,
            )  # fmt: skip
