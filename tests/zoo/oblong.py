"""Stencils of one dimension, and windows that are no squares about their point: as loops in any order, or written out."""

from __future__ import annotations

from math import prod
from random import Random

from tests.zoo.generate import Case, Shapes, length_near
from tests.zoo.orders import nested
from tests.zoo.texts import floats, kernel_text

LENGTHS = {1: (2, 3, 5, 7, 9), 2: (1, 2, 3, 5, 7), 3: (1, 2, 3, 7)}
MOST = {1: 9, 2: 49, 3: 42}
"""Places of a window."""
EDGES = ("test", "clamp", "modulo", "leave", "wider", "skip")


def stencil(seed: int, rng: Random) -> Case:
    """One window over an array."""
    rank = rng.choice((1, 1, 2, 2, 3))
    windows = [_window(rng, rank) for _ in range(rank)]
    while prod(high - low for low, high in windows) not in range(2, MOST[rank] + 1):
        windows = [_window(rng, rank) for _ in range(rank)]
    edge, kind = rng.choice(EDGES), rng.choice(("mean", "max", "weighted", "bilateral", "read"))
    axes = [*"zyx"[3 - rank :]]
    steps = dict(zip(axes, "wvu"[3 - rank :], strict=True))
    moving = [a for a, (low, high) in zip(axes, windows, strict=True) if high - low > 1 or low]
    moved = {a: f"{a} + {steps[a]}" if a in moving else a for a in axes}
    lengths = {a: f"a.shape[{d}]" for d, a in enumerate(axes)}
    reach = dict(zip(axes, windows, strict=True))
    lines, here = [], dict(moved)
    for a in moving:
        match edge:
            case "clamp":
                lines, here[a] = [*lines, f"{a}{a} = lw.clamp({moved[a]}, 0, {lengths[a]} - 1)"], f"{a}{a}"
            case "modulo":
                lines, here[a] = [*lines, f"{a}{a} = ({moved[a]} + {lengths[a]}) % {lengths[a]}"], f"{a}{a}"
            case "wider":
                here[a] = f"{a} + {steps[a]} + {-reach[a][0]}" if reach[a][0] < 0 else moved[a]
            case _:
                pass
    value = f"a[{', '.join(here.values())}]"
    weight = f"(1.0 + 0.125 * ({' + '.join(steps[a] for a in moving)}))"
    table = " + ".join(f"{_stride(reach, moving, a)} * ({steps[a]} + {-reach[a][0]})" for a in moving)
    middle = ", ".join(f"{a} + {max(0, -reach[a][0])}" if edge == "wider" and a in moving else a for a in axes)
    added = {
        "mean": [f"s += {value}"],
        "max": [f"s = lw.max(s, {value})"],
        "weighted": [f"s += {value} * {weight}"],
        "read": [f"s += {value} * b[{table}]"],
        "bilateral": [f"q = {value}", "f = lw.exp((q - m) * (m - q))", "s += f * q", "t += f"],
    }[kind]
    inside = " and ".join(f"0 <= {moved[a]} < {lengths[a]}" for a in moving)
    match edge:
        case "test":
            added = [f"if {inside}:", *(f"    {line}" for line in added)]
        case "skip":
            outside = " or ".join(f"{moved[a]} < 0 or {moved[a]} >= {lengths[a]}" for a in moving)
            added = [f"if {outside}:", "    continue", *added]
        case _:
            pass
    loops = [f"for {steps[a]} in range({reach[a][0]}, {reach[a][1]}):" for a in rng.sample(moving, len(moving))]
    body = ["s = 0.0"]
    if kind == "bilateral":
        body += ["t = 1.0", f"m = a[{middle}]"]
    plain = kind in ("mean", "weighted") and edge in ("leave", "wider") and rank < 3 and rng.random() < 0.6
    body += _written_out(reach, moving, here, kind) if plain else nested(loops, [*lines, *added])
    place = f"r[{', '.join(axes)}]"
    body += [f"{place} = {'s / t' if kind == 'bilateral' else 's'}"]
    if edge == "leave":
        bounds = [f"{a} < {-reach[a][0]}" for a in moving if reach[a][0] < 0]
        bounds += [f"{a} >= {lengths[a]} - {reach[a][1] - 1}" for a in moving if reach[a][1] > 1]
        body = [f"if {' or '.join(bounds)}:", f"    {place} = a[{', '.join(axes)}]", "    return", *body]
    odd = [Random(seed + n) for n in range(3)]

    def shapes(points: int) -> tuple[Shapes, tuple[int, ...]]:
        side = round(points ** (1 / rank))
        grid = tuple(max(10, length_near(odd[d], side)) for d in range(rank))
        more = [max(0, -low) + max(0, high - 1) if edge == "wider" else 0 for low, high in windows]
        sizes = {"a": tuple(n + m for n, m in zip(grid, more, strict=True)), "r": grid}
        if kind == "read":
            sizes["b"] = (prod(reach[a][1] - reach[a][0] for a in moving),)
        return sizes, grid

    arrays = floats(a=rank, **({"b": 1} if kind == "read" else {}), r=rank)
    return Case(seed, "oblong", kernel_text(axes, arrays, body), shapes)


def _window(rng: Random, rank: int) -> tuple[int, int]:
    """From where to where it reaches along one axis: about its point, from it on, up to it, or beside it."""
    long = rng.choice(LENGTHS[rank])
    low = rng.choice((-(long // 2), -(long // 2), 0, 1 - long))
    return low, low + long


def _stride(reach: dict[str, tuple[int, int]], moving: list[str], axis: str) -> int:
    return prod(reach[a][1] - reach[a][0] for a in moving[moving.index(axis) + 1 :])


def _written_out(reach: dict[str, tuple[int, int]], moving: list[str], here: dict[str, str], kind: str) -> list[str]:
    """The rounds of the loops, one line for each place."""
    places: list[dict[str, int]] = [{}]
    for a in moving:
        places = [p | {a: n} for p in places for n in range(*reach[a])]
    lines: list[str] = []
    for p in places:
        at = [f"{a} + {p[a] - min(0, reach[a][0]) * ('+ ' in here[a][4:])}" if a in p else a for a in here]
        weight = 1.0 + 0.125 * sum(p.values())
        lines.append(f"s += a[{', '.join(at)}]" + (f" * {weight}" if kind == "weighted" else ""))
    return [line.replace("+ -", "- ").replace(" + 0", "") for line in lines]
