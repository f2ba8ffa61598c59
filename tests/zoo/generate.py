"""Naive kernels over arrays as people write them, from seeds: products over any pair of operations, windows, rows.

A case is a text in the language and arrays of three sizes. The truth is the function itself, run by Python for single
points on float64 numbers. Constants of models and of default plans may be fitted to even seeds; odd seeds judge.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Shapes = dict[str, tuple[int, ...]]
SMALL, WAVE, FULL = "small", "wave", "full"
POINTS = {SMALL: 1 << 10, WAVE: 1 << 18, FULL: 1 << 22}
"""About so many elements are written."""
BEYOND_CACHES = 4
"""So many times as many by what little is computed of each: 128 MB are no longer found in a cache."""
FAMILIES = ("product", "window", "row", "stencil")
COMPUTED = ("product", "boolean", "order")
"""Families whose kernels compute much of each number that they read."""

JOINS = {
    "+": "s += {e}",
    "max": "s = lw.max(s, {e})",
    "min": "s = lw.min(s, {e})",
    "extreme": "if {e} > s:\n{pad}    s = {e}",
}
STARTS = {"+": "0.0", "max": "-1e30", "min": "1e30", "extreme": "-1e30"}
PAIRS = ("{a} * {b}", "{a} + {b}", "abs({a} - {b})", "({a} - {b}) * ({a} - {b})", "lw.max({a}, {b})")


@dataclass(frozen=True, slots=True)
class Case:
    """One kernel. shapes: of its arrays and its grid for about so many points. written: the array that it writes.

    fill: makes what is not random numbers above -0.25 in float32. unwritten: what lies in the array before a call.
    signed: whether signs of zeros count.
    """

    seed: int
    family: str
    text: str
    shapes: Callable[[int], tuple[Shapes, tuple[int, ...]]]
    written: str = "r"
    fill: Callable[[np.random.Generator, Shapes], dict[str, Array]] | None = None
    unwritten: float = np.nan
    signed: bool = False

    def points(self, size: str) -> int:
        """About so many elements are written."""
        return POINTS[size] * (BEYOND_CACHES if self.is_beyond_caches(size) else 1)

    def is_beyond_caches(self, size: str) -> bool:
        """Whether its arrays are so large that a launch finds nothing of use in the caches."""
        return size == FULL and self.family not in COMPUTED

    def arguments(self, size: str) -> tuple[dict[str, Array], tuple[int, ...]]:
        """The arrays of a size, and the grid."""
        return self.made(self.points(size))

    def made(self, points: int, least: float = -0.25) -> tuple[dict[str, Array], tuple[int, ...]]:
        """Arrays for about so many points, of numbers from `least` on where the kernel does not say, and the grid."""
        rng = np.random.default_rng(self.seed)
        shapes, grid = self.shapes(points)
        own = self.fill(rng, shapes) if self.fill else {}
        given = {
            n: own[n] if n in own else rng.random(shape, np.float32) + np.float32(least) for n, shape in shapes.items()
        }
        given[self.written][...] = self.unwritten
        return given, grid


def generate(seed: int) -> Case:
    """The kernel of a seed."""
    rng = Random(seed)
    family = FAMILIES[seed // 2 % len(FAMILIES)]  # each has as many even seeds as odd ones
    return {"product": _product, "window": _window, "row": _row, "stencil": _stencil}[family](seed, rng)


def length_near(rng: Random, n: int) -> int:
    """A length near to n, odd in one case of three."""
    return max(3, n + (rng.choice((-1, 1)) if rng.random() < 1 / 3 and n % 2 == 0 else 0))


def _text(indices: list[str], arrays: dict[str, int], body: list[str]) -> str:
    parameters = [f"{i}: lw.index" for i in indices]
    parameters += [f"{n}: lw.Array{rank}[lw.f32]" for n, rank in arrays.items()]
    return "\n".join(["@lw.threadwise", f"def kernel({', '.join(parameters)}):", *(f"    {line}" for line in body), ""])


def _join(operation: str, e: str, depth: int) -> list[str]:
    pad = "    " * depth
    return (pad + JOINS[operation].format(e=e, pad=pad)).split("\n")


# ---------------------------------------------------------------- products over any pair of operations


def _product(seed: int, rng: Random) -> Case:
    batched, writes_inside = rng.random() < 0.35, rng.random() < 0.3
    turned_a, turned_b, turned_r = (rng.random() < 0.3 for _ in range(3))
    operation, pair = rng.choice(tuple(JOINS)), rng.choice(PAIRS)
    triangular = not writes_inside and rng.random() < 0.15
    batch = ["z"] if batched else []
    a = f"a[{', '.join([*batch, *(('k', 'y') if turned_a else ('y', 'k'))])}]"
    b = f"b[{', '.join([*batch, *(('x', 'k') if turned_b else ('k', 'x'))])}]"
    r = f"r[{', '.join([*batch, *(('x', 'y') if turned_r else ('y', 'x'))])}]"
    long = f"a.shape[{len(batch) + (0 if turned_a else 1)}]"
    end = "y + 1" if triangular else long
    inner = [
        f"s = {STARTS[operation]}",
        f"for k in range({end}):",
        *_join(operation, pair.format(a=a, b=b), 1),
        f"{r} = s",
    ]
    if writes_inside:
        columns = f"b.shape[{len(batch) + (0 if turned_b else 1)}]"
        body = [f"for x in range({columns}):", *(f"    {line}" for line in inner)]
        indices = [*batch, "y"]
    else:
        body, indices = inner, [*batch, "y", "x"]
    rank = 2 + batched
    wide, deep = rng.choice((0.5, 1, 2)), rng.choice((0.25, 1, 2))
    text = _text(indices, {"a": rank, "b": rank, "r": rank}, body)
    odd = [Random(seed + n) for n in range(3)]

    def shapes(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        many = (6,) if batched else ()
        side = (points // (6 if batched else 1)) ** 0.5
        m, n = length_near(odd[0], int(side * wide)), length_near(odd[1], int(side / wide))
        k = (
            max(m, length_near(odd[2], int(min(side, 512) * deep)))
            if triangular
            else length_near(odd[2], int(min(side, 512) * deep))
        )
        sizes = {
            "a": (*many, *((k, m) if turned_a else (m, k))),
            "b": (*many, *((n, k) if turned_b else (k, n))),
            "r": (*many, *((n, m) if turned_r else (m, n))),
        }
        return sizes, (*many, m) if writes_inside else (*many, m, n)

    return Case(seed, "product", text, shapes)


# ---------------------------------------------------------------- windows over channels


def _window(seed: int, rng: Random) -> Case:
    high, wide = rng.choice((2, 3, 3, 5)), rng.choice((1, 3, 3, 5))
    stride, apart = rng.choice((1, 1, 2)), rng.choice((1, 1, 2, 3))
    channels = rng.choice((0, 0, 4, 16))  # of the image, 0 for none
    layers = rng.choice((0, 8, 32)) if channels else 0  # of the result
    inside = layers > 0 and rng.random() < 0.3
    operation = rng.choice(("+", "+", "+", "max", "min"))
    y, x = (f"{stride} * {i}" if stride > 1 else i for i in "yx")
    dy, dx = (f"{apart} * {v}" if apart > 1 else v for v in "vu")
    image = f"a[{'c, ' if channels else ''}{y} + {dy}, {x} + {dx}]"
    weight = f"b[{'o, ' if layers else ''}{'c, ' if channels else ''}{wide} * v + u]"
    e = rng.choice(
        (f"{image} * {weight}", f"{image} * {weight}", f"abs({image} - {weight})", f"lw.max({image}, 0.0) * {weight}")
    )
    loops = ([f"for c in range({rng.choice((channels, 'a.shape[0]'))}):"] if channels else []) + [
        f"for v in range({high}):",
        f"for u in range({wide}):",
    ]
    body = [f"s = {STARTS[operation]}"]
    body += ["    " * n + line for n, line in enumerate(loops)]
    body += [*_join(operation, e, len(loops)), f"r[{'o, ' if layers else ''}y, x] = s"]
    if inside:
        body = ["for o in range(b.shape[0]):", *(f"    {line}" for line in body)]
    indices = [*(["o"] if layers and not inside else []), "y", "x"]
    ranks = {"a": 2 + (channels > 0), "b": 1 + (layers > 0) + (channels > 0), "r": 2 + (layers > 0)}
    odd = [Random(seed + n) for n in range(2)]

    def shapes(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        side = (points / max(1, layers)) ** 0.5
        m, n = length_near(odd[0], int(side)), length_near(odd[1], int(side))
        image = (stride * (m - 1) + apart * (high - 1) + 1, stride * (n - 1) + apart * (wide - 1) + 1)
        sizes = {
            "a": (*((channels,) if channels else ()), *image),
            "b": (*((layers,) if layers else ()), *((channels,) if channels else ()), high * wide),
            "r": (*((layers,) if layers else ()), m, n),
        }
        return sizes, (m, n) if inside or not layers else (layers, m, n)

    return Case(seed, "window", _text(indices, ranks, body), shapes)


# ---------------------------------------------------------------- rows


def _row(seed: int, rng: Random) -> Case:
    kind = rng.choice(("fold", "argmax", "normal", "softmax", "running", "copy", "two"))
    e = rng.choice(("a[y, k]", "a[y, k] * b[k]", "abs(a[y, k])", "lw.exp(a[y, k])"))
    loop, operation = "for k in range(a.shape[1]):", rng.choice(("+", "max", "min", "extreme"))
    whole = True
    match kind:
        case "fold":
            body = [f"s = {STARTS[operation]}", loop, *_join(operation, e, 1), "r[y, 0] = s"]
            whole = False
        case "two":
            body = [
                "s = 0.0",
                "m = -1e30",
                loop,
                f"    q = {e}",
                "    s += q",
                "    m = lw.max(m, q)",
                "r[y, 0] = s",
                "r[y, 1] = m",
            ]
            whole = False
        case "argmax":
            body = [
                "m = a[y, 0]",
                "w = 0",
                loop,
                f"    if {e} > m:",
                f"        m = {e}",
                "        w = k",
                "r[y, 0] = m",
                "r[y, 1] = lw.f32(w)",
            ]
            whole = False
        case "normal":
            body = ["s = 0.0", loop, f"    s += {e} * {e}", loop, "    r[y, k] = a[y, k] / (s + 1.0)"]
        case "softmax":
            body = ["m = a[y, 0]", loop, "    m = lw.max(m, a[y, k])", "s = 0.0", loop, "    s += lw.exp(a[y, k] - m)",
                    loop, "    r[y, k] = lw.exp(a[y, k] - m) / s"]  # fmt: skip
        case "running":
            body = [f"s = {STARTS[operation]}", loop, *_join(operation, e, 1), "    r[y, k] = s"]
        case _:
            body = [loop, f"    r[y, k] = 2.0 * {e}"]
    deep = rng.choice((0.125, 1, 8))
    odd = [Random(seed + n) for n in range(2)]

    def shapes(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        n = length_near(odd[1], max(8, int(min((points * deep) ** 0.5, 4096))))
        m = length_near(odd[0], max(3, points // n))
        return {"a": (m, n), "b": (n,), "r": (m, n) if whole else (m, 2)}, (m,)

    arrays = {"a": 2, "b": 1, "r": 2} if "b[" in "".join(body) else {"a": 2, "r": 2}
    made = shapes if "b" in arrays else _without(shapes, "b")
    return Case(seed, "row", _text(["y"], arrays, body), made)


def _without(shapes: Callable[[int], Any], name: str) -> Callable[[int], Any]:
    def less(points: int) -> Any:
        sizes, grid = shapes(points)
        return {n: s for n, s in sizes.items() if n != name}, grid

    return less


# ---------------------------------------------------------------- stencils in loops, with edges


def _stencil(seed: int, rng: Random) -> Case:
    rank, reach = rng.choice((2, 2, 3)), rng.choice((1, 1, 2))
    edge = rng.choice(("test", "clamp", "modulo", "leave"))
    kind = rng.choice(("mean", "max", "weighted", "bilateral"))
    names = ["z", "y", "x"][3 - rank :]
    steps = ["w", "v", "u"][3 - rank :]
    reach = 1 if rank == 3 else reach
    moved = [f"{n} + {s}" for n, s in zip(names, steps, strict=True)]
    here = [f"{n}{n}" for n in names]
    lengths = [f"a.shape[{d}]" for d in range(rank)]
    place = {
        "clamp": [f"{h} = lw.clamp({m}, 0, {n} - 1)" for h, m, n in zip(here, moved, lengths, strict=True)],
        "modulo": [f"{h} = ({m} + {n}) % {n}" for h, m, n in zip(here, moved, lengths, strict=True)],
    }.get(edge, [f"{h} = {m}" for h, m in zip(here, moved, strict=True)])
    e = f"a[{', '.join(here)}]"
    added = {
        "mean": [f"s += {e}"],
        "max": [f"s = lw.max(s, {e})"],
        "weighted": [f"s += {e} * (1.0 + 0.125 * ({' + '.join(steps)}))"],
        "bilateral": [f"q = {e}", "f = lw.exp((q - m) * (m - q))", "s += f * q", "t += f"],
    }[kind]
    if edge == "test":
        test = " and ".join(f"0 <= {h} < {n}" for h, n in zip(here, lengths, strict=True))
        added = [f"if {test}:", *(f"    {line}" for line in added)]
    loops = [f"for {s} in range({-reach}, {reach + 1}):" for s in steps]
    body = ["s = 0.0"]
    if kind == "bilateral":
        body += ["t = 0.0", f"m = a[{', '.join(names)}]"]
    body += ["    " * n + line for n, line in enumerate(loops)]
    body += ["    " * rank + line for line in (*place, *added)]
    body += [f"r[{', '.join(names)}] = {'s / t' if kind == 'bilateral' else 's'}"]
    if edge == "leave":
        test = " or ".join(f"{n} < {reach} or {n} >= {size} - {reach}" for n, size in zip(names, lengths, strict=True))
        body = [f"if {test}:", f"    r[{', '.join(names)}] = a[{', '.join(names)}]", "    return", *body]
    odd = [Random(seed + n) for n in range(3)]

    def shapes(points: int) -> tuple[dict[str, tuple[int, ...]], tuple[int, ...]]:
        side = points ** (1 / rank)
        grid = tuple(max(2 * reach + 1, length_near(odd[d], round(side))) for d in range(rank))
        return {"a": grid, "r": grid}, grid

    return Case(seed, "stencil", _text(names, {"a": rank, "r": rank}, body), shapes)
