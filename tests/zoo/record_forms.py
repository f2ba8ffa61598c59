"""More kernels over records, of seeds of their own: other reductions, branches on what is the same for all, extremes in
tables.
"""

from __future__ import annotations

import re
from random import Random

from tests.zoo import records as first
from tests.zoo.records import PLACES, RecordCase, named, record_of, weight

FIRST = 200_000
"""Seeds from here on are of these forms; below they are those of `tests.zoo.records`."""
FORMS = ("reduced", "switched pairs", "switched elements", "extremes")
CHARGES = [f"{r}.w{n}" for r in ("target", "source") for n in range(3)]
SCALARS = (3, 6, 12, 24, 40)
"""About so many a record has."""


def generate(seed: int) -> RecordCase:
    """The kernel of a seed, of these forms or of the first ones."""
    if seed < FIRST:
        return first.generate(seed)
    made = {
        "reduced": _reduced,
        "switched pairs": _switched_pairs,
        "switched elements": _switched_elements,
        "extremes": _extremes,
    }[FORMS[seed // 2 % len(FORMS)]]
    return made(seed, Random(seed))


# ---------------------------------------------------------------- pairs


def _of_pairs(
    seed: int, rng: Random, body: list[str], results: list[tuple[str, str]], uniforms: dict[str, tuple[str, float]]
) -> RecordCase:
    """Over all pairs, or those that a search finds. results: and their annotations. uniforms: their types and
    values.
    """
    searched = rng.random() < 0.4
    dimensions = rng.choice((2, 3) if searched else (1, 2, 3, 3, 4))
    square = "d * d" if dimensions == 1 else "lw.dot(d, d)"
    text = "\n".join([*body, *(value for value, _ in results)])
    begin = ["d = source.position - target.position", f"q = {square}"]
    begin += [
        f"{name} = {value}"
        for name, value in (("g", "q + soft"), ("x", "1.0 / (1.0 + q)"))
        if re.search(rf"\b{name}\b", text)
    ]
    lines = [*begin, *body]
    hot = {"position": PLACES[dimensions]} | {f"w{n}": "lw.f32" for n in range(3)} | {"kind": "lw.i32"}
    fields = record_of(rng, named(hot, [*lines, *(value for value, _ in results)]), rng.choice(SCALARS))
    annotations = tuple(PLACES[dimensions] if a == "vector" else a for _, a in results)
    values = tuple("f * d" if a == "vector" else value for value, a in results)
    shown = "".join(f", {n}: {kind}" for n, (kind, _) in uniforms.items())
    return RecordCase(
        seed, "searches" if searched else "pairs", fields,
        f"@lw.pairwise\ndef kernel(target: Item, source: Item, soft: lw.f32{shown})", tuple(lines), values, annotations,
        {"soft": 0.0625} | {n: value for n, (_, value) in uniforms.items()}, rng.random() < 0.6,
        rng.choice((2.0, 20.0, 80.0)) if searched else 0.0, searched and rng.random() < 0.3,
    )  # fmt: skip


def _reduced(seed: int, rng: Random) -> RecordCase:
    """The smallest of many and their indices, logarithms of sums, whether any or all; one alone or several, sums beside
    them.
    """
    many = rng.choice((1, 2, 5, 8, 32))
    value = rng.choice(("q", "f", "f + q", "source.w0 - target.w1", "-q"))
    near, far = rng.choice((2.0**-12, 0.0625)), rng.choice((0.5, 1.0, 4.0))  # of numbers that float32 holds
    choices = [
        (value, f"lw.KMin[lw.f32, {many}]"),
        (value, f"lw.ArgKMin[lw.f32, {many}]"),
        (rng.choice(("f", "-8.0 * q", "f - q")), "lw.LogSumExp[lw.f32]"),
        (rng.choice((f"q < {near}", "target.kind == source.kind", f"q < {near} and source.kind == 1")), "lw.Any"),
        (rng.choice((f"q < {far}", "target.kind != source.kind", f"q < {far} or source.kind > 0")), "lw.All"),
    ]
    results = rng.sample(choices, rng.choice((1, 1, 2, 2, 3, 5)))
    if rng.random() < 0.4:
        results.append(
            rng.choice((("f", "lw.f32"), ("f", "vector"), ("f", "lw.ArgMin[lw.f32]"), ("f", "lw.Max[lw.f32]")))
        )
    rng.shuffle(results)
    body = [f"e = {weight(rng)}", f"f = {' * '.join([*rng.sample(CHARGES, rng.choice((0, 1, 2))), 'e'])}"]
    used = any("f" in value.split() or kind == "vector" for value, kind in results)
    return _of_pairs(seed, rng, body if used else [], results, {})


def _switched_pairs(seed: int, rng: Random) -> RecordCase:
    """Branches that all pairs of a call take alike, alone and inside or around others."""
    one, two, three = (weight(rng) for _ in range(3))
    switch = {"mode": ("lw.i32", rng.randrange(3)), "flag": ("lw.bool", rng.random() < 0.5),
              "cut": ("lw.f32", rng.choice((-1.0, 0.25)))}  # fmt: skip
    modes = ["if mode == 0:", f"    e = {one}", "elif mode == 1:", f"    e = {two}", "else:", f"    e = {three}"]
    flag = [f"e = {one}", "if flag:", f"    e = e * {two}"]
    cut = [f"e = {one}", "if cut > 0.0 and q > cut:", "    e = 0.0"]
    around = ["e = 0.0", "if cut > 0.0:", "    if q < cut:", f"        e = {one}", "else:", f"    e = {two}"]
    inside = ["e = 0.0", "if target.kind == source.kind:", *(f"    {line}" for line in modes)]
    chosen = [f"e = lw.select(flag, {one}, {two})", "if mode != 1 and not flag:", f"    e += {three}"]
    body = rng.choice((modes, flag, cut, around, inside, chosen))
    body = [*body, f"f = {' * '.join([*rng.sample(CHARGES, rng.choice((0, 1, 2))), 'e'])}"]
    values = [("f", "lw.f32"), ("f", "vector"), ("f * f", "lw.f32"), ("f + q", "lw.Min[lw.f32]"), ("f", "lw.ArgMin[lw.f32]"),
              ("q < 0.25", "lw.Count")]  # fmt: skip
    results = rng.sample(values[:3], 1) + rng.sample(values, rng.choice((0, 0, 1, 2)))
    uniforms = {n: u for n, u in switch.items() if any(n in line for line in body)}
    return _of_pairs(seed, rng, body, results, uniforms)


# ---------------------------------------------------------------- elements


def _of_elements(
    seed: int, rng: Random, body: list[str], result: str, uniforms: dict[str, tuple[str, float]],
    tables: dict[str, str],
) -> RecordCase:  # fmt: skip
    """tables: the types of arrays that it changes."""
    vector = rng.choice(("lw.vec2", "lw.vec3"))
    hot = {"position": vector, "velocity": vector} | {f"w{n}": "lw.f32" for n in range(8)}
    hot |= dict.fromkeys(("ident", "kind", "rounds"), "lw.i32")
    fields = record_of(rng, named(hot, [*body, result]), rng.choice(SCALARS))
    shown = "".join(f", {n}: {kind}" for n, (kind, _) in uniforms.items())
    shown += "".join(f", {n}: lw.Array1[lw.{kind}]" for n, kind in tables.items())
    values = {"step": 0.125} | {n: value for n, (_, value) in uniforms.items()}
    results, annotations = ((result,), ("lw.f32",)) if result else ((), ())
    head = f"@lw.elementwise\ndef kernel(p: Item, step: lw.f32{shown})"
    return RecordCase(
        seed, "elements", fields, head, tuple(body), results, annotations, values, tables=tuple(tables)
    )  # fmt: skip


def _total(rng: Random) -> tuple[str, str]:
    """One of the scalars of an element, and a sum of some."""
    used = [f"p.w{n}" for n in rng.sample(range(8), rng.choice((1, 2, 4)))]
    return used[0], " + ".join(used)


MOVES = "p.position += step * p.velocity"


def _switched_elements(seed: int, rng: Random) -> RecordCase:
    """Branches that all elements of a call take alike, and loops as long for all."""
    own, total = _total(rng)
    modes = ["x = 0.0", "if mode == 0:", f"    x = lw.exp(-({total}))", "elif mode == 1:", f"    x = lw.sqrt({total})",
             "else:", f"    {own} = 0.5 * {own}"]  # fmt: skip
    flag = [f"x = {total}", "if flag:", f"    {MOVES}", "    x = x * step"]
    cut = [f"x = {total}", "if cut > 0.0 and x > cut:", "    x = cut", f"{own} = x"]
    turns = [f"x = {own}", "for k in range(turns):", "    x = 0.5 * x + step * lw.f32(k)"]
    inside = [
        f"x = {total}",
        "if p.kind == 0:",
        "    if flag:",
        "        x = lw.sin(x)",
        "    else:",
        f"        {MOVES}",
    ]
    # of numbers below 3, which go to 1
    both = [
        f"x = 0.25 * ({total})",
        "if flag or mode == 2:",
        "    for k in range(p.rounds):",
        "        x = x * (1.5 - 0.5 * x)",
    ]
    ends = [
        f"x = {own}",
        "for k in range(16):",
        "    if flag and k >= turns:",
        "        break",
        "    x = x * 0.5 + step",
    ]
    body = rng.choice((modes, flag, cut, turns, inside, both, ends))
    offered = {"mode": ("lw.i32", rng.randrange(3)), "flag": ("lw.bool", rng.random() < 0.5),
               "cut": ("lw.f32", rng.choice((-1.0, 0.25))), "turns": ("lw.i32", rng.choice((0, 1, 7, 30)))}  # fmt: skip
    uniforms = {n: u for n, u in offered.items() if any(n in line for line in body)}
    result = rng.choice(("x", "x * step", ""))
    return _of_elements(seed, rng, body if result else [*body, f"{own} = x"], result, uniforms, {})


def _extremes(seed: int, rng: Random) -> RecordCase:
    """The smallest and the largest of what elements bring to the entries of a table: many to few entries, or few to
    many.
    """
    own, total = _total(rng)
    place = rng.choice(("p.ident", "p.ident", "p.kind", "p.rounds", "p.ident // 64", "0"))
    value = rng.choice((total, f"lw.exp(-({total}))", f"{total} - step"))
    whole = rng.choice(("p.rounds", "3 * p.rounds + p.kind", "p.ident"))
    brought = {"least": f"min(least, {{}}, {value})", "most": f"max(most, {{}}, {value})",
               "first": f"min(first, {{}}, {whole})", "last": f"max(last, {{}}, {whole})"}  # fmt: skip
    chosen = rng.sample(list(brought), rng.choice((1, 1, 1, 2, 2, 3)))
    lines = [f"lw.scatter_{brought[n]}" for n in chosen]
    body = [line.format(place) for line in lines]
    match rng.choice(("none", "kind", "twice", "loop")):
        case "kind":
            body = [f"if {rng.choice(('p.kind == 1', f'{own} > 0.5'))}:", *(f"    {line}" for line in body)]
        case "twice":
            body += [line.format(rng.choice(("p.kind", "p.rounds"))) for line in lines]
        case "loop":
            turned = f"({place} + k) % {first.TABLE}"
            body = [f"for k in range({rng.choice((2, 5))}):", *(f"    {line.format(turned)}" for line in lines)]
        case _:
            pass
    if rng.random() < 0.3:
        body.append(MOVES)
    tables = {n: "f32" if n in ("least", "most") else "i32" for n in chosen}
    return _of_elements(seed, rng, body, total if rng.random() < 0.3 else "", {}, tables)
