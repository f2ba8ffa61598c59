"""The benchmarks of the ladder `compiler`: ten of the original, and four that people write today.

Each is one entry of `BENCHMARKS`: a naive kernel, the shapes of its arrays, its result in float64,
and what a library has for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

import lanewise as lw
from lanewise.ladders import compiler_kernels as kernels
from lanewise.sims.common.devices import array_module, module_of, require_memory, to_host

WINDOW, SMALL = 32, 16  # edges of the window of a convolution, and of small matrices
SAMPLE = 512  # outputs that are checked, and all where there are not many more
Arrays = Mapping[str, Any]
Places = tuple[NDArray[np.int64], ...]
Answer = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LibraryNames:
    """What a library has for a benchmark: its names on a GPU and on a CPU, and a call of (NumPy or
    CuPy, the arrays).

    A call writes the result array, or returns another one.
    """

    on_gpu: str
    on_cpu: str
    call: Callable[[Any, Arrays], Any]


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


def pick(a: Any, *index: Any) -> Any:
    """The elements of an array on any device at places that NumPy's arrays tell."""
    return a[tuple(module_of(a).asarray(i) if isinstance(i, np.ndarray) else i for i in index)]


def _wide(a: Any, *index: Any) -> Answer:
    """An array, or elements of it, as float64 on the host."""
    return to_host(pick(a, *index) if index else a).astype(np.float64)


def _product(g: Arrays, at: Places) -> Answer:
    *batch, y, x = at
    rows = _wide(g["a"], *batch, y)
    columns = _wide(g["b"], batch[0], slice(None), x) if batch else _wide(g["b"], slice(None), x).T
    return np.einsum("pk,pk->p", rows, columns)


def _times_vector(g: Arrays, at: Places) -> Answer:
    return _wide(g["a"], at[0]) @ _wide(g["x"])


def _times_transposed(g: Arrays, at: Places) -> Answer:
    return _wide(g["x"]) @ _wide(g["a"], slice(None), at[0])


def _outer(g: Arrays, at: Places) -> Answer:
    return _wide(g["u"])[at[0]] * _wide(g["v"])[at[1]]


def _sum(g: Arrays, at: Places) -> Answer:
    return np.array([to_host(g["a"]).sum(dtype=np.float64)])


def _solved(g: Arrays, at: Places) -> Answer:
    """Forward substitution of the columns that are asked for, row after row."""
    i, x = at
    columns, which = np.unique(x, return_inverse=True)
    a, c = to_host(g["a"]), _wide(g["b"], slice(None), columns)
    for row in range(len(c)):
        c[row] = (c[row] - a[row, :row].astype(np.float64) @ c[:row]) / float(a[row, row])
    return c[i, which]


def _convolved(g: Arrays, at: Places) -> Answer:
    f, total = _wide(g["f"]), np.zeros(len(at[0]))
    for j, i in np.ndindex(*f.shape):
        total += f[j, i] * _wide(g["a"], at[0] + j, at[1] + i)
    return total


def _turned(g: Arrays, at: Places) -> Answer:
    return _wide(g["a"], at[1], at[0])


def _green(g: Arrays, at: Places) -> Answer:
    p = _around(g["raw"], at)
    return np.where((at[0] + at[1]) % 2 == 0, p[4], (p[1] + p[3] + p[5] + p[7]) / 4)


def _maximal(g: Arrays, at: Places) -> Answer:
    p = _around(g["a"], at)
    return (p[4] > np.max([*p[:4], *p[5:]], axis=0)).astype(np.float64)


def _around(a: Any, at: Places) -> list[Answer]:
    return [_wide(a, at[0] + j, at[1] + i) for j in range(3) for i in range(3)]


def _laplacian(g: Arrays, at: Places) -> Answer:
    z, y, x = (p + 1 for p in at)
    steps = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
    around = sum(_wide(g["a"], z + k, y + j, x + i) for k, j, i in steps)
    return np.asarray(around) - 6 * _wide(g["a"], z, y, x)


def _softened(g: Arrays, at: Places) -> Answer:
    rows = _wide(g["a"], at[0])
    e = np.exp(rows - rows.max(axis=1, keepdims=True))
    return e[np.arange(len(e)), at[1]] / e.sum(axis=1)


def _counted(g: Arrays, at: Places) -> Answer:
    counts = to_host(g["counts"])
    return (counts + np.bincount(to_host(g["a"]), minlength=counts.size))[at[0]].astype(np.float64)


# ------------------------------------------------------------ libraries


def _library_transpose(xp: Any, g: Arrays) -> None:
    xp.copyto(g["c"], g["a"].T)


def _library_solve(xp: Any, g: Arrays) -> Any:
    """By cuBLAS, in place after a copy; its matrices are transposed ones.

    On a CPU by LAPACK's general solver, as NumPy has no other.
    """
    a, b, c = g["a"], g["b"], g["c"]
    if xp is np:
        return np.linalg.solve(a, b)
    xp.copyto(c, b)
    cublas, one = xp.cuda.cublas, np.ones(1, np.float32)
    rows, columns = b.shape
    cublas.strsm(
        xp.cuda.Device().cublas_handle,
        cublas.CUBLAS_SIDE_RIGHT,
        cublas.CUBLAS_FILL_MODE_UPPER,
        cublas.CUBLAS_OP_N,
        cublas.CUBLAS_DIAG_NON_UNIT,
        columns,
        rows,
        one.ctypes.data,
        a.data.ptr,
        rows,
        c.data.ptr,
        columns,
    )
    return None


def _by_fourier(xp: Any, g: Arrays) -> Any:
    """A correlation is a product of transforms, one of them conjugated; what wraps round is beyond
    the result.
    """
    a, (h, w) = g["a"], g["c"].shape
    edges = [_smooth_length(length) for length in a.shape]
    spectrum = xp.fft.rfft2(a, edges) * xp.conj(xp.fft.rfft2(g["f"], edges))
    return xp.fft.irfft2(spectrum, edges)[:h, :w]


def _smooth_length(n: int) -> int:
    """The next length that transforms are fast for: of factors 2, 3 and 5."""
    while True:
        rest = n
        for p in (2, 3, 5):
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return n
        n += 1


def _library_green(xp: Any, g: Arrays) -> Any:
    raw, (h, w) = g["raw"], g["green"].shape
    y, x = xp.arange(h)[:, None], xp.arange(w)
    around = (raw[:-2, 1:-1] + raw[2:, 1:-1] + raw[1:-1, :-2] + raw[1:-1, 2:]) * xp.float32(0.25)
    return xp.where((y + x) % 2 == 0, raw[1:-1, 1:-1], around)


def _library_maxima(xp: Any, g: Arrays) -> Any:
    a, (h, w) = g["a"], g["c"].shape
    highest = a[:h, :w]
    for j, i in ((0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)):
        highest = xp.maximum(highest, a[j : j + h, i : i + w])
    return (a[1:-1, 1:-1] > highest).astype(xp.float32)


def _library_stencil(xp: Any, g: Arrays) -> Any:
    a, i = g["a"], slice(1, -1)
    s = a[:-2, i, i] + a[2:, i, i] + a[i, :-2, i] + a[i, 2:, i] + a[i, i, :-2] + a[i, i, 2:]
    return s - xp.float32(6) * a[i, i, i]


def _library_softmax(xp: Any, g: Arrays) -> Any:
    e = xp.exp(g["a"] - g["a"].max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def _arrays(call: Callable[[Any, Arrays], Any]) -> tuple[LibraryNames, ...]:
    """Expressions of whole arrays, where a library has no call of its own."""
    return (LibraryNames("CuPy", "NumPy", call),)


def _blas(call: Callable[[Any, Arrays], Any]) -> tuple[LibraryNames, ...]:
    return (LibraryNames("cuBLAS", "BLAS", call),)


# ------------------------------------------------------------ naive versions of another form


def _halving(xp: Any, g: Arrays, plan: lw.Plan) -> tuple[list[lw.Call], Any]:
    """A launch a level, between two arrays in turn; the last one leaves the sum."""
    calls: list[lw.Call] = []
    source, turn = g["a"].reshape(-1), 0
    spare = [
        xp.empty((source.size + 1) // 2, xp.float32),
        xp.empty((source.size + 3) // 4, xp.float32),
    ]
    while source.size > 1 or not calls:
        target = spare[turn][: (source.size + 1) // 2]
        calls.append(kernels.halve.bind(a=source, c=target, grid=target.size, plan=plan))
        source, turn = target, 1 - turn
    return calls, source


# ------------------------------------------------------------ the benchmarks


def _triangle(xp: Any, name: str, array: Any) -> Any:
    """A triangle whose solutions are no larger than what they are solved for."""
    if name != "a":
        return array - xp.float32(0.5)
    n = array.shape[0]
    return xp.tril((array - xp.float32(0.5)) / xp.float32(n**0.5)) + xp.float32(2) * xp.eye(
        n, dtype=xp.float32
    )


def _positive(xp: Any, name: str, array: Any) -> Any:
    return array


def _bins(numbers: int) -> int:
    """Of a histogram in which each number occurs about a hundred times."""
    return max(1, numbers // 96)


def _binned(xp: Any, name: str, array: Any) -> Any:
    """Numbers of bins, evenly spread; and no counts."""
    return (array * xp.float32(_bins(array.size) if name == "a" else 0)).astype(xp.int32)


def _of_a(g: Arrays) -> tuple[int, ...]:
    return tuple(g["a"].shape)


def _square(*names: str, times: int = 1) -> Callable[[int], dict[str, tuple[int, ...]]]:
    return lambda n: dict.fromkeys(names, (times * n, times * n))


def _vectors(n: int) -> dict[str, tuple[int, ...]]:
    return {"a": (4 * n, 4 * n), "x": (4 * n,), "c": (4 * n,)}


def _picture(name: str, result: str) -> Callable[[int], dict[str, tuple[int, ...]]]:
    return lambda n: {name: (n + 2, n + 2), result: (n, n)}


def _matrices(n: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys("abc", (batch(n), SMALL, SMALL))


def batch(n: int) -> int:
    """Small matrices whose elements are one and a half times those of a large one."""
    return max(1, 3 * n * n // (2 * SMALL * SMALL))


def _edge(n: int) -> int:
    """Of a cube with eight times as many elements as a matrix."""
    return max(2, round((8 * n * n) ** (1 / 3)))


BENCHMARKS = (
    Benchmark(
        name="tmv",
        title="transposed matrix times vector",
        kernel=kernels.transposed,
        shapes=_vectors,
        answer=_times_transposed,
        terms=lambda n: 4 * n,
        flops=lambda n: 2 * (4 * n) ** 2,
        library=_blas(lambda xp, g: xp.matmul(g["a"].T, g["x"], out=g["c"])),
    ),
    Benchmark(
        name="mm",
        title="matrix times matrix",
        kernel=kernels.matmul,
        shapes=_square("a", "b", "c"),
        answer=_product,
        terms=lambda n: n,
        flops=lambda n: 2 * n**3,
        library=_blas(lambda xp, g: xp.matmul(g["a"], g["b"], out=g["c"])),
    ),
    Benchmark(
        name="mv",
        title="matrix times vector",
        kernel=kernels.matvec,
        shapes=_vectors,
        answer=_times_vector,
        terms=lambda n: 4 * n,
        flops=lambda n: 2 * (4 * n) ** 2,
        library=_blas(lambda xp, g: xp.matmul(g["a"], g["x"], out=g["c"])),
    ),
    Benchmark(
        name="vv",
        title="outer product",
        kernel=kernels.outer,
        shapes=lambda n: {"u": (4 * n,), "v": (4 * n,), "c": (4 * n, 4 * n)},
        answer=_outer,
        flops=lambda n: (4 * n) ** 2,
        library=_arrays(lambda xp, g: xp.multiply(g["u"][:, None], g["v"], out=g["c"])),
    ),
    Benchmark(
        name="rd",
        title="reduction",
        kernel=kernels.total,
        shapes=_square("a", times=4),
        answer=_sum,
        result="",
        points=_of_a,
        flops=lambda n: (4 * n) ** 2,
        naive=_halving,
        values=_positive,
        library=_arrays(lambda xp, g: g["a"].sum()),
    ),
    Benchmark(
        name="strsm",
        title="triangular solve, many right-hand sides",
        kernel=kernels.solve,
        shapes=_square("a", "b", "c"),
        answer=_solved,
        points=lambda g: g["b"].shape[1:],
        terms=lambda n: n,
        flops=lambda n: n**3,
        moved=lambda n: 10 * n * n,
        sampled=40,
        values=_triangle,
        library=(LibraryNames("cuBLAS", "LAPACK (LU)", _library_solve),),
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
        answer=_convolved,
        terms=lambda n: WINDOW**2,
        flops=lambda n: 2 * WINDOW**2 * n * n,
        values=_positive,
        library=(LibraryNames("cuFFT", "NumPy's FFT", _by_fourier),),
    ),
    Benchmark(
        name="tp",
        title="transpose",
        kernel=kernels.transpose,
        shapes=_square("a", "c", times=4),
        answer=_turned,
        library=_arrays(_library_transpose),
    ),
    Benchmark(
        name="demosaic",
        title="demosaic",
        kernel=kernels.demosaic,
        shapes=_picture("raw", "green"),
        answer=_green,
        result="green",
        flops=lambda n: 4 * n * n,
        library=_arrays(_library_green),
    ),
    Benchmark(
        name="imregionmax",
        title="regional maxima",
        kernel=kernels.maxima,
        shapes=_picture("a", "c"),
        answer=_maximal,
        flops=lambda n: 9 * n * n,
        library=_arrays(_library_maxima),
    ),
    Benchmark(
        name="batched",
        title=f"products of {SMALL} x {SMALL} matrices",
        kernel=kernels.batched,
        shapes=_matrices,
        answer=_product,
        terms=lambda n: SMALL,
        flops=lambda n: 2 * SMALL**3 * batch(n),
        original=False,
        library=_blas(lambda xp, g: xp.matmul(g["a"], g["b"], out=g["c"])),
    ),
    Benchmark(
        name="stencil",
        title="stencil of 7 points in a cube",
        kernel=kernels.stencil,
        shapes=lambda n: {"a": (_edge(n) + 2,) * 3, "c": (_edge(n),) * 3},
        answer=_laplacian,
        flops=lambda n: 7 * _edge(n) ** 3,
        original=False,
        library=_arrays(_library_stencil),
    ),
    Benchmark(
        name="softmax",
        title="softmax of rows",
        kernel=kernels.softmax,
        shapes=lambda n: dict.fromkeys("ac", (16 * n, n)),
        answer=_softened,
        points=lambda g: g["a"].shape[:1],
        terms=lambda n: n,
        flops=lambda n: 5 * 16 * n * n,
        original=False,
        library=_arrays(_library_softmax),
    ),
    Benchmark(
        name="histogram",
        title="histogram",
        kernel=kernels.histogram,
        result="counts",
        in_place=True,
        original=False,
        shapes=lambda n: {"a": (6 * n * n,), "counts": (_bins(6 * n * n),)},
        answer=_counted,
        points=_of_a,
        values=_binned,
        library=_arrays(lambda xp, g: xp.bincount(g["a"], minlength=g["counts"].size)),
    ),
)
