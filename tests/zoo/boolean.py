"""Products whose sums are "or" and whose products are "and", of booleans, of bits in integers, and others over
integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import numpy as np

from tests.zoo.generate import Array, Case, Shapes, length_near
from tests.zoo.texts import kernel_text

UNWRITTEN = 1234567.0
"""In the results before a call: no product is so large, and bits are that by no chance to speak of."""
BITS = {"i32": np.int32, "u32": np.uint32, "i64": np.int64}


@dataclass(frozen=True, slots=True)
class Ring:
    """One pair of operations. dual: "and" of "or", whose numbers are the other ones'."""

    start: str
    lines: tuple[str, ...]
    of: str = "booleans"
    dual: bool = False
    given: str = "s"


RINGS = {
    "or": Ring("False", ("s = s or ({a} and {b})",)),
    "found": Ring("False", ("if {a} and {b}:", "    s = True")),
    "either": Ring("False", ("s = s or ({a} and {b})",), given="lw.i32(s)"),
    "all": Ring("True", ("s = s and ({a} or {b})",), dual=True),
    "stop": Ring("False", ("if {a} and {b}:", "    s = True", "    break")),
    "count": Ring("0", ("if {a} and {b}:", "    s += 1")),
    "unequal": Ring("False", ("s = s or {a} != {b}",)),
    "above": Ring("False", ("s = s or ({a} > 0.7 and {b} > 0.7)",), "floats"),
    "bits": Ring("{type}(0)", ("s = s | ({a} & {b})",), "integers"),
    "bits all": Ring("{type}(-1)", ("s = s & ({a} | {b})",), "integers", dual=True),
    "odd": Ring("{type}(0)", ("s = s ^ ({a} & {b})",), "integers"),
    "sum": Ring("{type}(0)", ("s += ({a} & {type}(7)) * ({b} & {type}(7))",), "integers"),
    "least": Ring("{type}(1000000)", ("s = lw.min(s, lw.max({a}, {b}))",), "integers"),
}


def product(seed: int, rng: Random) -> Case:
    """A product over one of these pairs of operations."""
    ring, batched = RINGS[rng.choice(tuple(RINGS))], rng.random() < 0.3
    bits = rng.choice(tuple(BITS))
    batch = ["z"] * batched
    places = {n: [*batch, *rng.choice((at, at[::-1]))] for n, at in (("a", "yk"), ("b", "kx"))}
    read = {n: f"{n}[{', '.join(at)}]" for n, at in places.items()} | {"type": f"lw.{bits}"}
    end = "y + 1" if rng.random() < 0.15 else f"a.shape[{places['a'].index('k')}]"
    inner = [f"s = {ring.start.format(**read)}", f"for k in range({end}):"]
    inner += [f"    {line.format(**read)}" for line in ring.lines]
    inner += [f"r[{', '.join([*batch, 'y', 'x'])}] = {ring.given}"]
    columns = f"for x in range(b.shape[{places['b'].index('x')}]):"
    inside = rng.random() < 0.3
    body = [columns, *(f"    {line}" for line in inner)] if inside else inner
    threads = [*batch, "y", *([] if inside else ["x"])]
    odd, deep = [Random(seed + n) for n in range(3)], rng.choice((5, 64, 512))

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        side = int((points // (6 if batched else 1)) ** 0.5)
        long = {"z": 6, "y": length_near(odd[0], side), "x": length_near(odd[1], side)}
        long["k"] = max(long["y"] if "y" in end else 3, length_near(odd[2], min(deep, side)))
        sizes = {n: tuple(long[i] for i in at) for n, at in places.items()}
        return sizes | {"r": tuple(long[i] for i in [*batch, "y", "x"])}, tuple(long[i] for i in threads)

    of = {"booleans": "bool", "floats": "f32", "integers": bits}[ring.of]
    result = bits if ring.of == "integers" else "bool" if ring.start in ("True", "False") else "i32"
    result = "i32" if ring.given != "s" else result
    rank = 2 + batched
    arrays = {"a": f"Array{rank}[lw.{of}]", "b": f"Array{rank}[lw.{of}]", "r": f"Array{rank}[lw.{result}]"}
    terms = places["a"].index("k")
    fill = _filled(ring, of, result, terms)
    return Case(seed, "boolean", kernel_text(threads, arrays, body), shapes, fill=fill, unwritten=UNWRITTEN)


def _filled(ring: Ring, of: str, result: str, terms: int) -> Callable[[np.random.Generator, Shapes], dict[str, Array]]:
    """Numbers of which about half of the results are true. terms: the dimension of `a` that is summed over."""

    def fill(rng: np.random.Generator, sizes: Shapes) -> dict[str, Array]:
        share = min(0.8, (0.7 / sizes["a"][terms]) ** 0.5)
        made = {"r": np.zeros(sizes["r"], {"bool": bool, **BITS}[result])}
        for n in ("a", "b"):
            if of == "bool":
                made[n] = (rng.random(sizes[n], np.float32) < share) != ring.dual
            elif of == "f32":
                made[n] = rng.random(sizes[n], np.float32) * np.float32(0.7 + 0.3 * share)
            else:
                numbers = rng.integers(0, 1 << 31, sizes[n], np.int64)
                for _ in range(round(-np.log2(share)) - 1):
                    numbers &= rng.integers(0, 1 << 31, sizes[n], np.int64)
                made[n] = (numbers ^ ((1 << 31) - 1) if ring.dual else numbers).astype(BITS[of])
        return made

    return fill
