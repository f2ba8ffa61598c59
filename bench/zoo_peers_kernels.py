"""The thirty kernels of `bench.zoo_peers`, with the text that a user of each peer writes for it.

Twenty-four are kernels of tests/zoo, by odd seeds, which judge. Six are of kinds that it does not
draw: stencils without corners, a gather, and sums over pairs of records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from typing import Any

import numpy as np

import lanewise as lw
from tests.zoo.generate import Array, Case, generate

Text = Callable[..., Any]
"""A function of a module and of the arrays that a kernel reads, in the order of its parameters."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A kernel and its natural texts, whose result is what it writes, or a tuple of its columns.

    Attributes:
        what: what it computes.
        case: its text in the zoo's language, and its arrays.
        numpy: NumPy's text, which is CuPy's and JAX's where these have no better one.
        torch: PyTorch's.
        compiled: what `torch.compile` gets, where a call of a library would leave nothing to it.
        jax: JAX's own.
        cupy: CuPy's own, a function of `cupy` and `cupyx.scipy`.
        keops: of KeOps, a function of `LazyTensor`.
        extra: arrays that peers get beside, such as the weights that a kernel has in its text.
        ties: whether it finds an index, which may be another one where two values are equal.
        tuned: whether XLA tries several algorithms when it compiles.
        ours: of host arrays and a device, a kernel and its arguments in place of the case's text.
    """

    what: str
    case: Case
    numpy: Text
    torch: Text
    compiled: Text | None = None
    jax: Text | None = None
    cupy: Text | None = None
    keops: Text | None = None
    extra: tuple[Array, ...] = ()
    ties: bool = False
    tuned: bool = False
    ours: Callable[[dict[str, Array], str], tuple[Any, tuple[Any, ...]]] | None = None

    @property
    def name(self) -> str:
        """Its seed, or that the zoo has none."""
        return str(self.case.seed) if self.case.seed < OWN else "-"

    def read(self, given: dict[str, Array]) -> list[Array]:
        """The arrays that peers get."""
        return [*(a for n, a in given.items() if n != self.case.written), *self.extra]


# ---------------------------------------------------------------- what several texts share


def taps(a: Any, window: Sequence[int], stride: int = 1, apart: int = 1) -> Iterator[Any]:
    """The array moved to each place of a window in its last axes."""
    lengths = a.shape[-len(window) :]
    for place in itertools.product(*map(range, window)):
        yield a[
            (
                ...,
                *(
                    slice(apart * p, apart * p + n - apart * (w - 1), stride)
                    for p, n, w in zip(place, lengths, window, strict=True)
                ),
            )
        ]


@cache
def folded(cp: Any, pair: str, join: str, start: str) -> Any:
    """A reduction of CuPy's over two arrays, which it broadcasts without memory for all pairs."""
    return cp.ReductionKernel("T x, T y", "T r", pair, join, "r = a", start, "folded")


def convolved(jax: Any, a: Any, b: Any, stride: int = 1, apart: int = 1) -> Any:
    """A convolution of JAX's: image and weights without the axis of a batch."""
    steps = {"window_strides": (stride,) * 2, "rhs_dilation": (apart,) * 2}
    return jax.lax.conv_general_dilated(a[None], b, padding="VALID", **steps)[0]


def sharpest(jax: Any, a: Any, padding: str) -> Any:
    """The largest value of 3 x 3 and of zero."""
    return jax.lax.reduce_window(a, 0.0, jax.lax.max, (3, 3), (1, 1), padding)


def bilateral(xp: Any, a: Any, edged: Any, inside: Any) -> Any:
    s: Any = 0.0
    t: Any = 0.0
    for q, there in zip(taps(edged, (3, 3)), taps(inside, (3, 3)), strict=True):
        f = xp.exp((q - a) * (a - q)) * there
        s, t = s + f * q, t + f
    return s / t


def apart(a: Any, b: Any) -> Any:
    """The squared distances of all pairs."""
    d = [a[:, n, None] - b[:, n] for n in range(3)]
    return d[0] * d[0] + d[1] * d[1] + d[2] * d[2]


def by_parts(xp: Any, f: Callable[[Any], Any], a: Any, length: int = 2048) -> Any:
    """A function of some targets at a time, as all pairs do not fit into memory."""
    return xp.concatenate([f(a[n : n + length]) for n in range(0, len(a), length)])


def logsumexp(xp: Any, e: Any) -> Any:
    most = xp.max(e, 1)
    return most + xp.log(xp.sum(xp.exp(e - most[:, None]), 1))


def lazy(tensor: Any, a: Any, b: Any) -> Any:
    """The squared distances for KeOps."""
    return ((tensor(a[:, None, :]) - tensor(b[None, :, :])) ** 2).sum(-1)


# ---------------------------------------------------------------- of the zoo


def _weights(reach: int) -> Array:
    """Those of the zoo's weighted stencils in two dimensions."""
    v, u = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    return (1.0 + 0.125 * (v + u)).astype(np.float32)


PRODUCTS = (
    Problem(
        "A Bᵀ",
        generate(297),
        lambda xp, a, b: xp.matmul(a, b.T),
        lambda torch, a, b: torch.matmul(a, b.T),
        tuned=True,
    ),
    Problem(
        "Aᵀ B, batched",
        generate(49),
        lambda xp, a, b: xp.matmul(a.swapaxes(1, 2), b),
        lambda torch, a, b: torch.matmul(a.mT, b),
        tuned=True,
    ),
    Problem(
        "triangular A Bᵀ",
        generate(1433),
        lambda xp, a, b: xp.matmul(xp.tril(a), b.T),
        lambda torch, a, b: torch.matmul(torch.tril(a), b.T),
        tuned=True,
    ),
    Problem(
        "min, +, batched, result transposed",
        generate(633),
        lambda xp, a, b: xp.min(a[:, None] + b.swapaxes(1, 2)[:, :, None], 3),
        lambda torch, a, b: (a[:, None] + b.mT[:, :, None]).amin(3),
        cupy=lambda cp, scipy, a, b: folded(cp, "x + y", "min(a, b)", "1e30")(
            a[:, None], b.swapaxes(1, 2)[:, :, None], axis=3
        ),
    ),
    Problem(
        "max, *",
        generate(193),
        lambda xp, a, b: xp.max(a[:, :, None] * b, 1),
        lambda torch, a, b: (a[:, :, None] * b).amax(1),
        cupy=lambda cp, scipy, a, b: folded(cp, "x * y", "max(a, b)", "-1e30")(
            a[:, :, None], b[None], axis=1
        ),
    ),
    Problem(
        "min, max (and, or), batched",
        generate(169),
        lambda xp, a, b: xp.min(xp.maximum(a[:, :, None], b[:, None]), 3),
        lambda torch, a, b: torch.maximum(a[:, :, None], b[:, None]).amin(3),
        cupy=lambda cp, scipy, a, b: folded(cp, "max(x, y)", "min(a, b)", "1e30")(
            a[:, :, None], b[:, None], axis=3
        ),
    ),
    Problem(
        "sum of absolute differences",
        generate(1121),
        lambda xp, a, b: xp.sum(xp.abs(a[:, None] - b), 2),
        lambda torch, a, b: torch.cdist(a, b, p=1),
        compiled=lambda torch, a, b: (a[:, None] - b).abs().sum(2),
        cupy=lambda cp, scipy, a, b: folded(cp, "abs(x - y)", "a + b", "0")(
            a[:, None], b[None], axis=2
        ),
    ),
    Problem(
        "sum of squared differences",
        generate(177),
        lambda xp, a, b: xp.sum(a * a, 1)[:, None] + xp.sum(b * b, 0) - 2 * xp.matmul(a, b),
        lambda torch, a, b: torch.cdist(a, b.T).square(),
        compiled=lambda torch, a, b: (
            (a * a).sum(1)[:, None] + (b * b).sum(0) - 2 * torch.matmul(a, b)
        ),
        tuned=True,
    ),
)  # fmt: skip

WINDOWS = (
    Problem(
        "5 x 5",
        generate(99),
        lambda xp, a, b: sum(t * b[n] for n, t in enumerate(taps(a, (5, 5)))),
        lambda torch, a, b: torch.nn.functional.conv2d(a[None, None], b.view(1, 1, 5, 5))[0, 0],
        compiled=lambda torch, a, b: sum(t * b[n] for n, t in enumerate(taps(a, (5, 5)))),
        jax=lambda jax, a, b: convolved(jax, a[None], b.reshape(1, 1, 5, 5))[0],
        cupy=lambda cp, scipy, a, b: scipy.signal.correlate2d(a, b.reshape(5, 5), mode="valid"),
        tuned=True,
    ),
    Problem(
        "5 x 5, 16 channels to 32",
        generate(75),
        lambda xp, a, b: sum(
            xp.tensordot(b[:, :, n], t, 1) for n, t in enumerate(taps(a, (5, 5)))
        ),
        lambda torch, a, b: torch.nn.functional.conv2d(a[None], b.view(32, 16, 5, 5))[0],
        jax=lambda jax, a, b: convolved(jax, a, b.reshape(32, 16, 5, 5)),
        tuned=True,
    ),
    Problem(
        "3 x 3, 4 channels to 8, stride 2, dilation 3",
        generate(635),
        lambda xp, a, b: sum(
            xp.tensordot(b[:, :, n], t, 1) for n, t in enumerate(taps(a, (3, 3), 2, 3))
        ),
        lambda torch, a, b: torch.nn.functional.conv2d(
            a[None], b.view(8, 4, 3, 3), stride=2, dilation=3
        )[0],
        jax=lambda jax, a, b: convolved(jax, a, b.reshape(8, 4, 3, 3), 2, 3),
        tuned=True,
    ),
    Problem(
        "3 x 3, min of products, dilation 3",
        generate(3),
        lambda xp, a, b: reduce(
            xp.minimum, [t * b[n] for n, t in enumerate(taps(a, (3, 3), apart=3))]
        ),
        lambda torch, a, b: reduce(
            torch.minimum, [t * b[n] for n, t in enumerate(taps(a, (3, 3), apart=3))]
        ),
    ),
    Problem(
        "3 x 3, absolute differences, 4 channels to 32",
        generate(115),
        lambda xp, a, b: sum(
            xp.sum(xp.abs(t - b[:, :, n, None, None]), 1) for n, t in enumerate(taps(a, (3, 3)))
        ),
        lambda torch, a, b: sum(
            (t - b[:, :, n, None, None]).abs().sum(1) for n, t in enumerate(taps(a, (3, 3)))
        ),
    ),
)  # fmt: skip

ROWS = (
    Problem(
        "sum",
        generate(269),
        lambda xp, a: (xp.sum(a, 1),),
        lambda torch, a: (a.sum(1),),
    ),
    Problem(
        "softmax",
        generate(61),
        lambda xp, a: (lambda e: e / xp.sum(e, 1)[:, None])(xp.exp(a - xp.max(a, 1)[:, None])),
        lambda torch, a: torch.softmax(a, 1),
        jax=lambda jax, a: jax.nn.softmax(a, 1),
    ),
    Problem(
        "norm",
        generate(13),
        lambda xp, a: a / (xp.sum(a * a, 1)[:, None] + 1),
        lambda torch, a: a / ((a * a).sum(1)[:, None] + 1),
    ),
    Problem(
        "largest and its index",
        generate(85),
        lambda xp, a: (xp.max(a, 1), xp.argmax(a, 1)),
        lambda torch, a: tuple(torch.max(a, 1)),
        ties=True,
    ),
    Problem(
        "cumulative sum",
        generate(181),
        lambda xp, a: xp.cumsum(a, 1),
        lambda torch, a: torch.cumsum(a, 1),
    ),
    Problem(
        "sum and largest of magnitudes",
        generate(77),
        lambda xp, a: (xp.sum(xp.abs(a), 1), xp.max(xp.abs(a), 1)),
        lambda torch, a: (a.abs().sum(1), a.abs().amax(1)),
    ),
)  # fmt: skip

STENCILS = (
    Problem(
        "max of 3 x 3, edges tested",
        generate(15),
        lambda xp, a: xp.maximum(reduce(xp.maximum, taps(xp.pad(a, 1), (3, 3))), 0),
        lambda torch, a: torch.nn.functional.max_pool2d(a[None, None], 3, 1, 1)[0, 0].clamp_min(0),
        jax=lambda jax, a: sharpest(jax, a, "SAME"),
        cupy=lambda cp, scipy, a: cp.maximum(
            scipy.ndimage.maximum_filter(a, 3, mode="constant"), 0
        ),
    ),
    Problem(
        "weighted 5 x 5, edges tested",
        generate(71),
        lambda xp, a, w: sum(t * w[n // 5, n % 5] for n, t in enumerate(taps(xp.pad(a, 2), (5, 5)))),
        lambda torch, a, w: torch.nn.functional.conv2d(
            a[None, None], w[None, None], padding=2
        )[0, 0],
        compiled=lambda torch, a, w: sum(
            t * w[n // 5, n % 5]
            for n, t in enumerate(taps(torch.nn.functional.pad(a, (2, 2, 2, 2)), (5, 5)))
        ),
        jax=lambda jax, a, w: convolved(jax, jax.numpy.pad(a, 2)[None], w[None, None])[0],
        cupy=lambda cp, scipy, a, w: scipy.ndimage.correlate(a, w, mode="constant"),
        extra=(_weights(2),),
        tuned=True,
    ),
    Problem(
        "sum of 3 x 3 x 3, edges clamped",
        generate(103),
        lambda xp, a: sum(taps(xp.pad(a, 1, mode="edge"), (3, 3, 3))),
        lambda torch, a: torch.nn.functional.avg_pool3d(
            torch.nn.functional.pad(a[None, None], (1,) * 6, mode="replicate"), 3, 1
        )[0, 0] * 27,
        jax=lambda jax, a: jax.lax.reduce_window(
            jax.numpy.pad(a, 1, mode="edge"), 0.0, jax.lax.add, (3, 3, 3), (1, 1, 1), "VALID"
        ),
        cupy=lambda cp, scipy, a: scipy.ndimage.uniform_filter(a, 3, mode="nearest") * 27,
    ),
    Problem(
        "max of 3 x 3, periodic",
        generate(79),
        lambda xp, a: xp.maximum(reduce(xp.maximum, taps(xp.pad(a, 1, mode="wrap"), (3, 3))), 0),
        lambda torch, a: torch.nn.functional.max_pool2d(
            torch.nn.functional.pad(a[None, None], (1,) * 4, mode="circular"), 3, 1
        )[0, 0].clamp_min(0),
        jax=lambda jax, a: sharpest(jax, jax.numpy.pad(a, 1, mode="wrap"), "VALID"),
        cupy=lambda cp, scipy, a: cp.maximum(scipy.ndimage.maximum_filter(a, 3, mode="wrap"), 0),
    ),
    Problem(
        "bilateral 3 x 3, edges tested",
        generate(31),
        lambda xp, a: bilateral(xp, a, xp.pad(a, 1), xp.pad(xp.ones_like(a), 1)),
        lambda torch, a: bilateral(
            torch,
            a,
            torch.nn.functional.pad(a, (1,) * 4),
            torch.nn.functional.pad(torch.ones_like(a), (1,) * 4),
        ),
    ),
)  # fmt: skip

# ---------------------------------------------------------------- of kinds that the zoo does not draw

OWN = 1_000_000  # seeds from here on are not the zoo's

FIVE = """@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], r: lw.Array2[lw.f32]):
    top = lw.clamp(y - 1, 0, a.shape[0] - 1)
    low = lw.clamp(y + 1, 0, a.shape[0] - 1)
    left = lw.clamp(x - 1, 0, a.shape[1] - 1)
    right = lw.clamp(x + 1, 0, a.shape[1] - 1)
    r[y, x] = a[top, x] + a[low, x] + a[y, left] + a[y, right] - 4.0 * a[y, x]
"""

SEVEN = """@lw.threadwise
def kernel(z: lw.index, y: lw.index, x: lw.index, a: lw.Array3[lw.f32], r: lw.Array3[lw.f32]):
    if z < 1 or z >= a.shape[0] - 1 or y < 1 or y >= a.shape[1] - 1 or x < 1 or x >= a.shape[2] - 1:
        r[z, y, x] = a[z, y, x]
        return
    s = a[z - 1, y, x] + a[z + 1, y, x] + a[z, y - 1, x] + a[z, y + 1, x]
    r[z, y, x] = s + a[z, y, x - 1] + a[z, y, x + 1] - 6.0 * a[z, y, x]
"""

GATHER = """@lw.threadwise
def kernel(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], i: lw.Array1[lw.i32], r: lw.Array2[lw.f32]):
    r[y, x] = a[i[y], x]
"""

PAIRS = """@lw.threadwise
def kernel(i: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32], w: lw.Array1[lw.f32], r: lw.Array1[lw.f32]):
"""
APART = """
    for j in range(b.shape[0]):
        u = a[i, 0] - b[j, 0]
        v = a[i, 1] - b[j, 1]
        q = a[i, 2] - b[j, 2]
        d = u * u + v * v + q * q
"""
GAUSSIAN = f"""{PAIRS}    s = 0.0{APART}        s += w[j] * lw.exp(-d)
    r[i] = s
"""
SOFT = f"""{PAIRS}    m = 1e30{APART}        m = lw.min(m, d)
    s = 0.0{APART}        s += lw.exp(m - d)
    r[i] = lw.log(s) - m
"""
NEAREST = f"""{PAIRS}    m = 1e30
    n = 0{APART}        if d < m:
            m = d
            n = j
    r[i] = lw.f32(n)
"""


class Gathering(Case):
    """A case with an array of places among the rows of another one."""

    __slots__ = ()

    def arguments(self, size: str) -> tuple[dict[str, Array], tuple[int, ...]]:
        given, grid = Case.arguments(self, size)
        places = np.random.default_rng(1).integers(0, len(given["a"]), len(given["i"]))
        return given | {"i": places.astype(np.int32)}, grid


def _square(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    grid = (round(points**0.5),) * 2
    return {"a": grid, "r": grid}, grid


def _cube(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    grid = (round(points ** (1 / 3)),) * 3
    return {"a": grid, "r": grid}, grid


def _rows(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    grid = (points // 64, 64)
    return {"a": grid, "i": grid[:1], "r": grid}, grid


def _of_pairs(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
    n = round(16 * points**0.5)
    return {"a": (n, 3), "b": (n, 3), "w": (n,), "r": (n,)}, (n,)


@lw.record
class Point:
    """A target or a source."""

    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def gaussian(target: Point, source: Point) -> lw.f32:
    d = source.position - target.position
    return source.weight * lw.exp(-lw.dot(d, d))


@lw.pairwise
def soft(target: Point, source: Point) -> lw.LogSumExp[lw.f32]:
    d = source.position - target.position
    return -lw.dot(d, d)


@lw.pairwise
def closest(target: Point, source: Point) -> lw.ArgMin[lw.f32]:
    d = source.position - target.position
    return lw.dot(d, d)


def _over(kernel: Any) -> Callable[[dict[str, Array], str], tuple[Any, tuple[Any, ...]]]:
    """A kernel over pairs of records, with the records that arrays of a case make."""

    def of(given: dict[str, Array], device: str) -> tuple[Any, tuple[Any, ...]]:
        ones = np.ones(len(given["a"]), np.float32)
        targets = Point.array(position=given["a"], weight=ones, device=device)
        sources = Point.array(position=given["b"], weight=given["w"], device=device)
        return kernel, (targets, sources)

    return of


def _seven(xp: Any, a: Any) -> Any:
    i = slice(1, -1)
    s = a[:-2, i, i] + a[2:, i, i] + a[i, :-2, i] + a[i, 2:, i] + a[i, i, :-2] + a[i, i, 2:]
    return s - 6 * a[i, i, i]


def _inside(copy: Any, a: Any) -> Any:
    copy[1:-1, 1:-1, 1:-1] = _seven(None, a)
    return copy


def _five(edged: Any) -> Any:
    i = slice(1, -1)
    return edged[:-2, i] + edged[2:, i] + edged[i, :-2] + edged[i, 2:] - 4 * edged[i, i]


@cache
def _sums(cp: Any, function: str) -> Any:
    """A sum over pairs by CuPy, without memory for all of them."""
    names = "T x0, T x1, T x2, T y0, T y1, T y2, T w"
    d2 = " + ".join(f"(x{n} - y{n}) * (x{n} - y{n})" for n in range(3))
    return cp.ReductionKernel(
        names, "T r", function.replace("d2", f"({d2})"), "a + b", "r = a", "0", "sums"
    )


def _columns(a: Any, b: Any) -> list[Any]:
    return [*(a[:, n, None] for n in range(3)), *(b[None, :, n] for n in range(3))]


OTHERS = (
    Problem(
        "5 points, edges clamped",
        Case(OWN + 1, "stencil", FIVE, _square),
        lambda xp, a: _five(xp.pad(a, 1, mode="edge")),
        lambda torch, a: _five(
            torch.nn.functional.pad(a[None, None], (1,) * 4, mode="replicate")[0, 0]
        ),
        cupy=lambda cp, scipy, a: scipy.ndimage.laplace(a, mode="nearest"),
    ),
    Problem(
        "7 points, edges kept",
        Case(OWN + 2, "stencil", SEVEN, _cube),
        lambda xp, a: _inside(a.copy(), a),
        lambda torch, a: _inside(a.clone(), a),
        jax=lambda jax, a: a.at[1:-1, 1:-1, 1:-1].set(_seven(jax, a)),
    ),
    Problem(
        "gather of rows",
        Gathering(OWN + 3, "gather", GATHER, _rows),
        lambda xp, a, i: xp.take(a, i, 0),
        lambda torch, a, i: torch.index_select(a, 0, i),
    ),
    Problem(
        "Gaussian sum over pairs",
        Case(OWN + 4, "pairs", GAUSSIAN, _of_pairs),
        lambda xp, a, b, w: xp.sum(w * xp.exp(-apart(a, b)), 1),
        lambda torch, a, b, w: by_parts(torch, lambda some: (-apart(some, b)).exp() @ w, a),
        compiled=lambda torch, a, b, w: (w * torch.exp(-apart(a, b))).sum(1),
        cupy=lambda cp, scipy, a, b, w: _sums(cp, "w * exp(-d2)")(
            *_columns(a, b), w[None], axis=1
        ),
        keops=lambda tensor, a, b, w: ((-lazy(tensor, a, b)).exp() @ w[:, None])[:, 0],
        ours=_over(gaussian),
    ),
    Problem(
        "log-sum-exp over pairs",
        Case(OWN + 5, "pairs", SOFT, _of_pairs),
        lambda xp, a, b, w: logsumexp(xp, -apart(a, b)),
        lambda torch, a, b, w: by_parts(
            torch, lambda some: torch.logsumexp(-apart(some, b), 1), a
        ),
        compiled=lambda torch, a, b, w: torch.logsumexp(-apart(a, b), 1),
        jax=lambda jax, a, b, w: jax.nn.logsumexp(-apart(a, b), 1),
        cupy=lambda cp, scipy, a, b, w: by_parts(
            cp, lambda some: logsumexp(cp, -apart(some, b)), a
        ),
        keops=lambda tensor, a, b, w: (-lazy(tensor, a, b)).logsumexp(dim=1)[:, 0],
        ours=_over(soft),
    ),
    Problem(
        "nearest of records",
        Case(OWN + 6, "pairs", NEAREST, _of_pairs),
        lambda xp, a, b, w: xp.argmin(apart(a, b), 1),
        lambda torch, a, b, w: by_parts(torch, lambda some: apart(some, b).argmin(1), a),
        compiled=lambda torch, a, b, w: apart(a, b).argmin(1),
        cupy=lambda cp, scipy, a, b, w: by_parts(cp, lambda some: apart(some, b).argmin(1), a),
        keops=lambda tensor, a, b, w: lazy(tensor, a, b).argmin(dim=1)[:, 0],
        ties=True,
        ours=_over(closest),
    ),
)  # fmt: skip

PROBLEMS = (*PRODUCTS, *WINDOWS, *ROWS, *STENCILS, *OTHERS)
