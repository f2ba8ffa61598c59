"""Naive kernels whose loops stand in any order: around what is written, inside sums, windows before channels."""

from __future__ import annotations

from random import Random

from tests.zoo.generate import JOINS, PAIRS, STARTS, Case, Shapes, length_near
from tests.zoo.texts import floats, kernel_text

UPDATES = {
    "+": ("{r} += {e}",),
    "max": ("{r} = lw.max({r}, {e})",),
    "min": ("{r} = lw.min({r}, {e})",),
    "extreme": ("if {e} > {r}:", "    {r} = {e}"),
}
LONGEST = 128
"""Terms of a sum that a thread adds up in memory: naive code takes a trip to it for each."""


def nested(loops: list[str], body: list[str]) -> list[str]:
    """A body in loops, the first of them outermost."""
    for loop in reversed(loops):
        body = [loop, *(f"    {line}" for line in body)]
    return body


def summed(over: dict[str, str], terms: dict[str, str], order: list[str], operation: str, e: str, r: str) -> list[str]:
    """Loops over results and terms in this order, which join `e` in a variable, or in `r` where a loop over results is
    inside.

    over, terms: the range of each loop's index.
    """
    first = next(n for n, i in enumerate(order) if i in terms)
    loops = [f"for {i} in {(over | terms)[i]}:" for i in order]
    inside = [f"for {i} in {over[i]}:" for i in order[first:] if i in over]
    if inside:
        update = [line.format(r=r, e=e) for line in UPDATES[operation]]
        body = [*nested(inside, [f"{r} = {STARTS[operation]}"]), *nested(loops[first:], update)]
    else:
        join = JOINS[operation].format(e=e, pad="").split("\n")
        body = [f"s = {STARTS[operation]}", *nested(loops[first:], join), f"{r} = s"]
    return nested(loops[:first], body)


def product(seed: int, rng: Random) -> Case:
    """A product of matrices, of which one index of a result, or two, or none, is a loop."""
    batched = rng.random() < 0.4
    threads = rng.choice([["y"], ["x"], ["y", "x"], ["x", "y"]] + [["z"]] * batched)
    threads = threads if not batched or "z" in threads else rng.choice((["z", *threads], threads))
    results = [*"zyx"] if batched else [*"yx"]
    loops = [i for i in results if i not in threads]
    order = rng.sample([*loops, "k"], len(loops) + 1)
    batch = ["z"] * batched
    a, b = (f"{n}[{', '.join([*batch, *rng.choice((at, at[::-1]))])}]" for n, at in (("a", "yk"), ("b", "kx")))
    r = f"r[{', '.join(results)}]"
    operation, e = rng.choice(tuple(JOINS)), rng.choice(PAIRS).format(a=a, b=b)
    longs = {"z": "range(a.shape[0])", "y": _long("a", a, "y"), "x": _long("b", b, "x")}
    body = summed({i: longs[i] for i in loops}, {"k": _long("a", a, "k")}, order, operation, e, r)
    deep, odd = rng.choice((7, 32, LONGEST)), [Random(seed + n) for n in range(3)]

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        points = min(points, 1 << 14) if threads == ["z"] else points
        side = int((points // (6 if batched else 1)) ** 0.5)
        long = {"z": 6, "y": length_near(odd[0], side), "x": length_near(odd[1], side)}
        long["k"] = length_near(odd[2], min(deep, side))
        read = {n: tuple(long[i.strip()] for i in place[2:-1].split(",")) for n, place in (("a", a), ("b", b))}
        return read | {"r": tuple(long[i] for i in results)}, tuple(long[i] for i in threads)

    rank = 2 + batched
    return Case(seed, "order", kernel_text(threads, floats(a=rank, b=rank, r=rank), body), shapes)


def _long(name: str, place: str, index: str) -> str:
    return f"range({name}.shape[{[i.strip() for i in place[2:-1].split(',')].index(index)}])"


def window(seed: int, rng: Random) -> Case:
    """A window over channels, into layers: the loops over it, and over results, in any order."""
    high, wide = rng.choice(((3, 3), (3, 2), (1, 7), (7, 1), (2, 5), (5, 3), (7, 7), (7, 3)))
    channels, layers = rng.choice((0, 3, 8)), rng.choice((0, 0, 4, 16))
    results = [*("o" if layers else ""), "y", "x"]
    threads = rng.choice((["y", "x"], results, ["x", "y"], ["y"], ["x"]))
    loops = [i for i in results if i not in threads]
    longs = {"o": "range(b.shape[0])", "y": "range(r.shape[-2])", "x": "range(r.shape[-1])"}
    longs = {i: t.replace("-2", str(len(results) - 2)).replace("-1", str(len(results) - 1)) for i, t in longs.items()}
    terms = {"v": f"range({high})", "u": f"range({wide})"}
    if channels:
        terms["c"] = rng.choice((f"range({channels})", "range(a.shape[0])"))
    order = rng.sample([*loops, *terms], len(loops) + len(terms))
    channel = "c, " if channels else ""
    image, weight = f"a[{channel}y + v, x + u]", f"b[{'o, ' if layers else ''}{channel}{wide} * v + u]"
    e = rng.choice(("{a} * {b}", "{a} * {b}", "abs({a} - {b})", "lw.max({a}, 0.0) * {b}")).format(a=image, b=weight)
    operation = rng.choice(("+", "+", "max", "min"))
    body = summed({i: longs[i] for i in loops}, terms, order, operation, e, f"r[{', '.join(results)}]")
    odd = [Random(seed + n) for n in range(2)]

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        side = int((points / max(1, layers)) ** 0.5)
        long = {"o": layers, "y": length_near(odd[0], side), "x": length_near(odd[1], side)}
        many = (channels,) if channels else ()
        return {
            "a": (*many, long["y"] + high - 1, long["x"] + wide - 1),
            "b": (*((layers,) if layers else ()), *many, high * wide),
            "r": tuple(long[i] for i in results),
        }, tuple(long[i] for i in threads)

    ranks = {"a": 2 + bool(channels), "b": 1 + bool(layers) + bool(channels), "r": len(results)}
    return Case(seed, "nest", kernel_text(threads, floats(**ranks), body), shapes)
