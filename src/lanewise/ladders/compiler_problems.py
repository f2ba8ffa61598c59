"""The benchmarks of the ladder `compiler`: ten of the original, and four that people write today.

Each is one entry of `BENCHMARKS`: a naive kernel, the shapes of its arrays, its result in float64,
and what a library has for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.ladders import compiler_kernels as kernels
from lanewise.ladders.compiler_answers import (
    SMALL,
    WINDOW,
    Answer,
    Arrays,
    Places,
    batch,
    by_fourier,
    convolved,
    counted,
    green_answer,
    laplacian,
    library_green,
    library_maxima,
    library_softmax,
    library_solve,
    library_stencil,
    library_transpose,
    maximal,
    outer_answer,
    pick,
    product_answer,
    softened,
    solved_answer,
    sum_answer,
    times_transposed,
    times_vector,
    turned,
)
from lanewise.ladders.compiler_inputs import (
    LibraryNames,
    binned,
    bins_of_numbers,
    blas,
    by_whole_arrays,
    edge,
    halving,
    of_a,
    picture,
    positive,
    small_matrices,
    square,
    vectors,
    well_posed_triangle,
)
from lanewise.sims.common.devices import array_module, require_memory, to_host

SAMPLE = 512  # outputs that are checked, and all where there are not many more


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """A naive kernel with what is needed to run and to check it, for matrices of n x n elements.

    Attributes:
        name: as rungs begin with it, and `--only` calls it.
        title: in words.
        kernel: the naive one.
        shapes: of its arrays for n, by their names.
        answer: the result in float64 at some places, computed by NumPy from the arrays; those that
        are written have their first values.
        terms: additions behind an element of the result, which rounding errors grow with.
        flops: additions and multiplications.
        moved: bytes that have to come from memory and go there; None: every array once.
        result: the array that is written; "": the kernel has a sum as its result.
        in_place: whether the result is read as well, and has to be as it was before a kernel is
        checked.
        points: how many values each index has, by the arrays; None: those of the result's
        dimensions.
        original: whether it is one of the ten of the original.
        sampled: how many elements of the result are checked.
        library: the same by a library; the fastest of several counts.
        naive: a naive version that is no plan of `kernel`: its launches and the array whose first
        element is the result.
        values: turns random numbers in [0, 1) into an array that suits the benchmark, by its name;
        types of four bytes.
    """

    name: str
    title: str
    kernel: lw.Threadwise
    shapes: Callable[[int], dict[str, tuple[int, ...]]]
    answer: Callable[[Arrays, Places], Answer]
    library: tuple[LibraryNames, ...]
    result: str = "c"
    terms: Callable[[int], float] = lambda n: 1.0
    flops: Callable[[int], float] = lambda n: 0.0
    moved: Callable[[int], float] | None = None
    in_place: bool = False
    points: Callable[[Arrays], tuple[int, ...]] | None = None
    original: bool = True
    sampled: int = SAMPLE
    naive: Callable[[Any, Arrays, lw.Plan], tuple[list[lw.Call], Any]] | None = None
    values: Callable[[Any, str, Any], Any] = lambda xp, name, array: array - xp.float32(0.5)

    @property
    def rank(self) -> int:
        """How many indices the kernel has."""
        return len(self.kernel.signature.indices)

    def nbytes(self, n: int) -> float:
        """Bytes of its arrays."""
        return 4.0 * sum(math.prod(shape) for shape in self.shapes(n).values())

    def traffic(self, n: int) -> float:
        """The least bytes that memory has to move."""
        return self.nbytes(n) if self.moved is None else self.moved(n)

    def tolerance(self, n: int) -> float:
        """The largest relative error that float32 explains: that of sums as in
        `Problem.tolerance`.
        """
        return (8 * self.terms(n) ** 0.5 + 64) * 2.0**-24


@dataclass
class PreparedProblem:
    """A benchmark with its arrays on a device."""

    benchmark: Benchmark
    n: int
    device: str
    arrays: dict[str, Any]
    first: Any = None  # the values of a result that is read as well
    _answer: tuple[Places, Answer] | None = field(default=None, repr=False)

    @property
    def grid(self) -> tuple[int, ...]:
        """How many values each index has."""
        b = self.benchmark
        return tuple(self.arrays[b.result].shape) if b.points is None else b.points(self.arrays)

    def bind(self, plan: lw.Plan | None) -> lw.Call:
        """The kernel by a plan, None for lanewise's own, bound to the arrays."""
        return self.benchmark.kernel.bind(**self.arrays, grid=self.grid, plan=plan)

    def reset(self) -> None:
        """The result as it was, or full of what no kernel computes."""
        if self.benchmark.result:
            self.arrays[self.benchmark.result][...] = np.nan if self.first is None else self.first

    def error(self, result: Any) -> float:
        """The relative error of a result, max |c - c64| / max |c64| over a sample; infinite where
        any element is none.
        """
        module = array_module(self.device)
        places, exact = self.answer()
        if not bool(module.isfinite(result).all()):
            return math.inf
        own = to_host(pick(result, *places) if places else result).astype(np.float64)
        return float(np.abs(own - exact).max() / (np.abs(exact).max() or 1.0))

    def answer(self) -> tuple[Places, Answer]:
        """Where results are checked, and what they should be."""
        if self._answer is None:
            b = self.benchmark
            places = sample(self.arrays[b.result].shape, b.sampled) if b.result else ()
            arrays = self.arrays if self.first is None else {**self.arrays, b.result: self.first}
            self._answer = places, b.answer(arrays, places)
        return self._answer


def make_case(benchmark: Benchmark, n: int, device: str, seed: int) -> PreparedProblem:
    """The arrays of a benchmark, random where they are read; raises `DeviceError` where they do not
    fit.
    """
    shapes, b = benchmark.shapes(n), benchmark
    require_memory(
        device, int(1.5 * b.nbytes(n)), f"benchmark {b.name!r} for matrices of {n} x {n}"
    )
    module = array_module(device)
    source = module.random.default_rng(seed)
    arrays: dict[str, Any] = {}
    for name, shape in shapes.items():
        if name == b.result and not b.in_place:
            arrays[name] = module.empty(shape, module.float32)
        else:
            arrays[name] = b.values(module, name, source.random(shape, dtype=module.float32))
    return PreparedProblem(b, n, device, arrays, arrays[b.result].copy() if b.in_place else None)


def sample(shape: tuple[int, ...], count: int) -> Places:
    """Places in an array: all of a small one, else its corners, where blocks are partial, and
    others at random.
    """
    if math.prod(shape) <= 2 * count:
        return tuple(np.indices(shape).reshape(len(shape), -1).astype(np.int64))
    ends = [
        sorted({0, 1, length // 2, length - 2, length - 1} & set(range(length))) for length in shape
    ]
    corners = np.array(list(itertools.product(*ends)), np.int64).T[:, : count // 2]
    rng = np.random.default_rng(17)
    others = [rng.integers(0, length, count - corners.shape[1]) for length in shape]
    return tuple(np.concatenate([c, o]) for c, o in zip(corners, others, strict=True))


# ------------------------------------------------------------ results in float64


# ------------------------------------------------------------ libraries


# ------------------------------------------------------------ naive versions of another form


# ------------------------------------------------------------ the benchmarks


BENCHMARKS = (
    Benchmark(
        name="tmv",
        title="transposed matrix times vector",
        kernel=kernels.transposed,
        shapes=vectors,
        answer=times_transposed,
        terms=lambda n: 4 * n,
        flops=lambda n: 2 * (4 * n) ** 2,
        library=blas(lambda xp, g: xp.matmul(g["a"].T, g["x"], out=g["c"])),
    ),
    Benchmark(
        name="mm",
        title="matrix times matrix",
        kernel=kernels.matmul,
        shapes=square("a", "b", "c"),
        answer=product_answer,
        terms=lambda n: n,
        flops=lambda n: 2 * n**3,
        library=blas(lambda xp, g: xp.matmul(g["a"], g["b"], out=g["c"])),
    ),
    Benchmark(
        name="mv",
        title="matrix times vector",
        kernel=kernels.matvec,
        shapes=vectors,
        answer=times_vector,
        terms=lambda n: 4 * n,
        flops=lambda n: 2 * (4 * n) ** 2,
        library=blas(lambda xp, g: xp.matmul(g["a"], g["x"], out=g["c"])),
    ),
    Benchmark(
        name="vv",
        title="outer product",
        kernel=kernels.outer,
        shapes=lambda n: {"u": (4 * n,), "v": (4 * n,), "c": (4 * n, 4 * n)},
        answer=outer_answer,
        flops=lambda n: (4 * n) ** 2,
        library=by_whole_arrays(lambda xp, g: xp.multiply(g["u"][:, None], g["v"], out=g["c"])),
    ),
    Benchmark(
        name="rd",
        title="reduction",
        kernel=kernels.total,
        shapes=square("a", times=4),
        answer=sum_answer,
        result="",
        points=of_a,
        flops=lambda n: (4 * n) ** 2,
        naive=halving,
        values=positive,
        library=by_whole_arrays(lambda xp, g: g["a"].sum()),
    ),
    Benchmark(
        name="strsm",
        title="triangular solve, many right-hand sides",
        kernel=kernels.solve,
        shapes=square("a", "b", "c"),
        answer=solved_answer,
        points=lambda g: g["b"].shape[1:],
        terms=lambda n: n,
        flops=lambda n: n**3,
        moved=lambda n: 10 * n * n,
        sampled=40,
        values=well_posed_triangle,
        library=(LibraryNames("cuBLAS", "LAPACK (LU)", library_solve),),
    ),
    Benchmark(
        name="conv",
        title=f"convolution, window of {WINDOW} x {WINDOW}",
        kernel=kernels.convolve,
        shapes=lambda n: {
            "a": (n + WINDOW - 1, n + WINDOW - 1),
            "f": (WINDOW, WINDOW),
            "c": (n, n),
        },
        answer=convolved,
        terms=lambda n: WINDOW**2,
        flops=lambda n: 2 * WINDOW**2 * n * n,
        values=positive,
        library=(LibraryNames("cuFFT", "NumPy's FFT", by_fourier),),
    ),
    Benchmark(
        name="tp",
        title="transpose",
        kernel=kernels.transpose,
        shapes=square("a", "c", times=4),
        answer=turned,
        library=by_whole_arrays(library_transpose),
    ),
    Benchmark(
        name="demosaic",
        title="demosaic",
        kernel=kernels.demosaic,
        shapes=picture("raw", "green"),
        answer=green_answer,
        result="green",
        flops=lambda n: 4 * n * n,
        library=by_whole_arrays(library_green),
    ),
    Benchmark(
        name="imregionmax",
        title="regional maxima",
        kernel=kernels.maxima,
        shapes=picture("a", "c"),
        answer=maximal,
        flops=lambda n: 9 * n * n,
        library=by_whole_arrays(library_maxima),
    ),
    Benchmark(
        name="batched",
        title=f"products of {SMALL} x {SMALL} matrices",
        kernel=kernels.batched,
        shapes=small_matrices,
        answer=product_answer,
        terms=lambda n: SMALL,
        flops=lambda n: 2 * SMALL**3 * batch(n),
        original=False,
        library=blas(lambda xp, g: xp.matmul(g["a"], g["b"], out=g["c"])),
    ),
    Benchmark(
        name="stencil",
        title="stencil of 7 points in a cube",
        kernel=kernels.stencil,
        shapes=lambda n: {"a": (edge(n) + 2,) * 3, "c": (edge(n),) * 3},
        answer=laplacian,
        flops=lambda n: 7 * edge(n) ** 3,
        original=False,
        library=by_whole_arrays(library_stencil),
    ),
    Benchmark(
        name="softmax",
        title="softmax of rows",
        kernel=kernels.softmax,
        shapes=lambda n: dict.fromkeys("ac", (16 * n, n)),
        answer=softened,
        points=lambda g: g["a"].shape[:1],
        terms=lambda n: n,
        flops=lambda n: 5 * 16 * n * n,
        original=False,
        library=by_whole_arrays(library_softmax),
    ),
    Benchmark(
        name="histogram",
        title="histogram",
        kernel=kernels.histogram,
        result="counts",
        in_place=True,
        original=False,
        shapes=lambda n: {"a": (6 * n * n,), "counts": (bins_of_numbers(6 * n * n),)},
        answer=counted,
        points=of_a,
        values=binned,
        library=by_whole_arrays(lambda xp, g: xp.bincount(g["a"], minlength=g["counts"].size)),
    ),
)
