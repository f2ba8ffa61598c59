"""More naive kernels over arrays, of seeds of their own: gathers, local arrays, functions, numbers that are not
ordinary.
"""

from __future__ import annotations

from random import Random

import numpy as np

from tests.zoo import generate as first
from tests.zoo.generate import JOINS, STARTS, Array, Case, Shapes, length_near

FIRST = 100_000
"""Seeds from here on are of these families; below they are those of `tests.zoo.generate`."""
FAMILIES = ("gather", "local", "function", "special")
UNWRITTEN = -7777.0
"""What special numbers are told from: it occurs among no results."""
SPECIAL = (np.nan, np.inf, -np.inf, -0.0, 0.0)

FUNCTIONS = {
    "rsqrt": "lw.rsqrt({x} + 0.5)", "sqrt": "lw.sqrt({x} + 0.5)", "cbrt": "lw.cbrt({x})", "exp": "lw.exp({x})",
    "exp2": "lw.exp2({x})", "expm1": "lw.expm1({x})", "log": "lw.log({x} + 0.5)", "log2": "lw.log2({x} + 0.5)",
    "log10": "lw.log10({x} + 0.5)", "log1p": "lw.log1p({x})", "sin": "lw.sin(4.0 * {x})", "cos": "lw.cos(4.0 * {x})",
    "tan": "lw.tan({x})", "asin": "lw.asin({x})", "acos": "lw.acos({x})", "atan": "lw.atan({x})",
    "atan2": "lw.atan2({x}, {y} + 0.5)", "sinh": "lw.sinh({x})", "cosh": "lw.cosh({x})", "tanh": "lw.tanh({x})",
    "erf": "lw.erf({x})", "erfc": "lw.erfc({x})", "gamma": "lw.gamma({x} + 1.5)", "pow": "lw.pow({x} + 0.5, {y})",
    "hypot": "lw.hypot({x}, {y})", "fma": "lw.fma({x}, {y}, {x})", "mix": "lw.mix({x}, {y}, 0.25)",
    "floor": "lw.floor(8.0 * {x})", "ceil": "lw.ceil(8.0 * {x})", "trunc": "lw.trunc(8.0 * {x})",
    "round": "lw.round(8.0 * {x})", "abs": "abs({x})", "min": "lw.min({x}, {y})", "max": "lw.max({x}, {y})",
    "clamp": "lw.clamp({x}, 0.0, 0.5)", "isnan": "lw.select(lw.isnan({x}), 0.0, {y})",
    "isinf": "lw.select(lw.isinf({x}), 0.0, {y})", "isfinite": "lw.select(lw.isfinite({x}), {y}, 0.0)",
    "select": "lw.select({x} < {y}, {x}, 2.0 * {y})",
}  # fmt: skip
"""Each function of the language, of numbers between -0.25 and 0.75."""


def generate(seed: int) -> Case:
    """The kernel of a seed, of these families or of the first ones."""
    if seed < FIRST:
        return first.generate(seed)
    rng = Random(seed)
    family = FAMILIES[seed // 2 % len(FAMILIES)]
    return {"gather": _gather, "local": _local, "function": _function, "special": _special}[family](seed, rng)


def _text(indices: str, arrays: dict[str, str], body: list[str]) -> str:
    typed = [f"{i}: lw.index" for i in indices] + [f"{n}: lw.{kind}" for n, kind in arrays.items()]
    return "\n".join(["@lw.threadwise", f"def kernel({', '.join(typed)}):", *(f"    {line}" for line in body), ""])


def _floats(**ranks: int) -> dict[str, str]:
    return {n: f"Array{rank}[lw.f32]" for n, rank in ranks.items()}


def _join(operation: str, e: str) -> list[str]:
    return ("    " + JOINS[operation].format(e=e, pad="    ")).split("\n")


# ---------------------------------------------------------------- reads at an index that an array holds


def _gather(seed: int, rng: Random) -> Case:
    kind = rng.choice(("elements", "rows", "columns", "twice", "sums", "bags", "absent"))
    index, spread = rng.choice(("i32", "i64")), rng.choice(("any", "near", "sorted", "same"))
    operation, many = rng.choice(tuple(JOINS)), rng.choice((1, 5, 16))
    loop = "for k in range(i.shape[1]):"
    start = f"s = {STARTS[operation]}"
    match kind:
        case "elements":
            indices, ranks, body = "y", (1, 1, 1), ["r[y] = 0.5 * a[i[y]]"]
        case "rows":
            indices, ranks, body = "yx", (2, 1, 2), ["r[y, x] = a[i[y], x]"]
        case "columns":
            indices, ranks, body = "yx", (2, 1, 2), ["r[y, x] = a[y, i[x]] + a[y, x]"]
        case "twice":
            indices, ranks, body = "y", (1, 1, 1), ["r[y] = a[i[i[y]]] - a[y]"]
        case "absent":
            body = ["j = i[y] - 2", "if j < 0:", "    r[y] = a[y]", "else:", "    r[y] = a[j] * a[y]"]
            indices, ranks = "y", (1, 1, 1)
        case "sums":
            e = rng.choice(("a[i[y, k]]", "a[i[y, k]] * a[y]", "abs(a[i[y, k]] - a[y])"))
            indices, ranks, body = "y", (1, 2, 1), [start, loop, *_join(operation, e), "r[y] = s"]
        case _:
            indices, ranks, body = "yx", (2, 2, 2), [start, loop, *_join(operation, "a[i[y, k], x]"), "r[y, x] = s"]
    odd = Random(seed)

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        n = length_near(odd, max(8, points if indices == "y" else int(points**0.5)))
        grid = (n,) * len(indices)
        return {"a": grid, "i": (n, many) if ranks[1] == 2 else (n,), "r": grid}, grid

    def fill(rng: np.random.Generator, sizes: Shapes) -> dict[str, Array]:
        n, shape = sizes["a"][0], sizes["i"]
        made = rng.integers(0, n, shape)
        if spread == "near":
            made = (np.arange(n).reshape(-1, *(1,) * (len(shape) - 1)) + rng.integers(-3, 4, shape)) % n
        elif spread == "sorted":
            made = np.sort(made, axis=None).reshape(shape)
        elif spread == "same":
            made = np.full(shape, made.flat[0])
        return {"i": made.astype({"i32": np.int32, "i64": np.int64}[index])}

    arrays = _floats(a=ranks[0]) | {"i": f"Array{ranks[1]}[lw.{index}]"} | _floats(r=ranks[2])
    return Case(seed, "gather", _text(indices, arrays, body), shapes, fill=fill)


# ---------------------------------------------------------------- arrays of a thread


def _local(seed: int, rng: Random) -> Case:
    n = rng.choice((3, 5, 8))
    kind = rng.choice(("median", "count", "largest", "matrix", "history"))
    rows = "for k in range(a.shape[1]):"
    match kind:
        case "median":
            body = [
                f"t = lw.zeros(lw.f32, {n})", f"for k in range({n}):", "    t[k] = a[y, (x + k) % a.shape[1]]",
                f"for j in range({n - 1}):", f"    for k in range({n - 1} - j):", "        if t[k] > t[k + 1]:",
                "            q = t[k]", "            t[k] = t[k + 1]", "            t[k + 1] = q", f"r[y, x] = t[{n // 2}]",
            ]  # fmt: skip
        case "count":
            body = [
                f"t = lw.zeros(lw.i32, {n})", rows, f"    t[lw.clamp(lw.i32(8.0 * a[y, k]), 0, {n - 1})] += 1",
                f"for k in range({n}):", "    r[y, k] = lw.f32(t[k])",
            ]  # fmt: skip
        case "largest":
            body = [
                f"t = lw.zeros(lw.f32, {n})", f"for k in range({n}):", "    t[k] = -1e30", rows, "    e = a[y, k]",
                f"    for j in range({n}):", "        if e > t[j]:", "            q = t[j]", "            t[j] = e",
                "            e = q", f"for k in range({n}):", "    r[y, k] = t[k]",
            ]  # fmt: skip
        case "matrix":
            body = [
                f"t = lw.zeros(lw.f32, {n})", rows, f"    for j in range({n}):", "        t[j] += a[y, k] * a[j, k]",
                "s = 0.0", f"for j in range({n}):", "    s += t[j] * t[j]", f"for j in range({n}):",
                "    r[y, j] = t[j] / (s + 1.0)",
            ]  # fmt: skip
        case _:
            body = [
                f"t = lw.zeros(lw.f32, {n})", rows, f"    t[k % {n}] = a[y, k]", "    s = 0.0",
                f"    for j in range({n}):", "        s += t[j]", "    r[y, k] = s",
            ]  # fmt: skip
    whole, odd = kind in ("median", "history"), Random(seed)

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        wide = length_near(odd, max(n, min(64, int(points**0.5))))
        high = max(n, points // wide)
        return {"a": (high, wide), "r": (high, wide if whole else n)}, (high, wide) if kind == "median" else (high,)

    return Case(seed, "local", _text("yx" if kind == "median" else "y", _floats(a=2, r=2), body), shapes)


# ---------------------------------------------------------------- every function of the language


def _function(seed: int, rng: Random) -> Case:
    names = list(FUNCTIONS)
    one, other = FUNCTIONS[names[seed // 8 % len(names)]], FUNCTIONS[rng.choice(names)]
    places = {"x": "a[y, k]", "y": "b[y, k]"}
    e, g = one.format(**places), other.format(**places)
    at_points = [line.replace(" k]", " x]") for line in (e, g)]
    kind, operation = rng.choice(("points", "rows", "branch")), rng.choice(tuple(JOINS))
    body = {
        "points": [f"r[y, x] = {at_points[0]} + {at_points[1]}"],
        "rows": [f"s = {STARTS[operation]}", "for k in range(a.shape[1]):", *_join(operation, f"{e} * {g}"), "r[y, 0] = s"],
        "branch": ["if a[y, x] > b[y, x]:", f"    r[y, x] = {at_points[0]}", "else:", f"    r[y, x] = {at_points[1]}"],
    }[kind]  # fmt: skip
    odd = Random(seed)

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        n = length_near(odd, max(3, int(points**0.5)))
        grid = (n,) if kind == "rows" else (n, n)
        return {"a": (n, n), "b": (n, n), "r": (n, 1) if kind == "rows" else grid}, grid

    indices = "y" if kind == "rows" else "yx"
    return Case(seed, "function", _text(indices, _floats(a=2, b=2, r=2), body), shapes)


# ---------------------------------------------------------------- NaN, infinities, zeros with a sign, and ties


def _special(seed: int, rng: Random) -> Case:
    kind = rng.choice(("fold", "index", "last", "least", "points", "product", "window"))
    operation, signed = rng.choice(tuple(JOINS)), False
    chosen = rng.sample(SPECIAL, rng.choice((0, 1, 2, 5)))  # none of them: ties alone
    share = rng.choice((0.02, 0.3))
    indices, loop, start = "y", "for k in range(a.shape[1]):", f"s = {STARTS[operation]}"
    found = ["r[y, 0] = m", "r[y, 1] = lw.f32(w)"]
    match kind:
        case "fold":
            e = rng.choice(("a[y, k]", "abs(a[y, k])", "lw.select(a[y, k] != a[y, k], 0.25, a[y, k])"))
            body = [start, loop, *_join(operation, e), "r[y, 0] = s"]
        case "index" | "last" | "least":
            test = {"index": ">", "last": ">=", "least": "<"}[kind]
            body = [
                f"m = {'1e30' if kind == 'least' else '-1e30'}", "w = -1", loop, f"    if a[y, k] {test} m:",
                "        m = a[y, k]", "        w = k", *found,
            ]  # fmt: skip
        case "points":
            places, indices, signed = {"a": "a[y, x]"}, "yx", True
            e = rng.choice(
                (
                    "-{a}",
                    "abs({a})",
                    "1.0 / {a}",
                    "lw.sqrt({a})",
                    "lw.select({a} > 0.0, {a}, -{a})",
                    "{a} * -1.0",
                    "lw.max(lw.exp({a}), 0.5)",
                    "lw.min(0.25, lw.log({a}))",
                )
            )
            body = [f"r[y, x] = {e.format(**places)}"]
        case "product":
            indices = "yx"
            e = rng.choice(("a[y, k] + a[k, x]", "lw.max(a[y, k], a[x, k])", "lw.min(a[y, k], a[k, x])"))
            body = [start, "for k in range(a.shape[1]):", *_join(operation, e), "r[y, x] = s"]
        case _:
            indices, test = "yx", "0 <= x + k < a.shape[1]"
            e = f"lw.select({test}, a[y, lw.clamp(x + k, 0, a.shape[1] - 1)], 0.0)"
            body = [start, "for k in range(-1, 2):", *_join(operation, e), "r[y, x] = s"]
    odd, narrow = Random(seed), len(indices) == 1

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        n = min(length_near(odd, max(4, int(points**0.5))), 512)
        return {"a": (n, n), "r": (n, 2) if narrow else (n, n)}, (n,) * len(indices)

    def fill(rng: np.random.Generator, sizes: Shapes) -> dict[str, Array]:
        a = rng.integers(-8, 9, sizes["a"]).astype(np.float32) / 4  # of so few numbers many are equal, and sums exact
        if chosen:
            there = rng.random(a.shape) < share
            a[there] = rng.choice(np.array(chosen, np.float32), int(there.sum()))
        return {"a": a}

    return Case(
        seed, "special", _text(indices, _floats(a=2, r=2), body), shapes, fill=fill, unwritten=UNWRITTEN, signed=signed
    )
