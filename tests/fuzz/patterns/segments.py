"""Segmentwise programs: lists of one to four levels, empty ones among them, records or values as items, rows, windows,
a dense axis or none.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.written import Pattern, array, layout, record, spelled, traits, value
from tests.fuzz.programs import NAMES, NUMBERS, VECTORS, Atom, Block, Writer, indented

WINDOW = 4


def write(rng: Random) -> str:
    """One program."""
    w = Writer(rng, traits(rng, pattern="segmentwise"))
    dense = rng.random() < 0.6
    template = {f"f{n}": w.type() for n in range(rng.randint(1, 3))} if dense else {}
    item = {f"g{n}": w.type() for n in range(rng.randint(1, 4))}
    rows = {f"r{n}": rng.choice((t.F32, t.F64)) for n in range(rng.choice((0, 0, 1, 2)))}
    uniforms = {f"p{n}": w.scalar() for n in range(rng.choice((0, 1)))}
    helpers = [line for _ in range(rng.choice((0, 1, 2))) for line in w.helper()]
    vectors = [v for v in VECTORS if w.traits.vectors]
    results = tuple(rng.choice((*NUMBERS, *vectors)) for _ in range(rng.choice((1, 1, 2))))
    known: dict[str, t.ValueType] = (
        {f"d.{n}": k for n, k in template.items()} | {f"i.{n}": k for n, k in item.items()} | uniforms
    )
    lines, atoms = list[str](), list[Atom]()
    for name, kind in rows.items():
        windowed, near = rng.random() < 0.5, w.new("w")
        if windowed:
            lines.append(f"{near} = lw.window({name}, {rng.choice(('0', 'len(' + name + ') - 4', '1'))}, {WINDOW})")
        atoms += [Atom(kind, _element(rng, w, near if windowed else name, windowed)), Atom(t.I32, _length(name))]
    b = Block({}, known, atoms=atoms)
    w.budget = rng.choice((15, 30, 50))
    lines += w.block(b, rng.randint(1, 4), results)
    w.budget = max(w.budget, 15)
    lines += w.returning(b, results)
    typed = [
        *(["d: D"] if dense else []),
        "i: I",
        *(f"{n}: lw.Row[{NAMES[k]}]" for n, k in rows.items()),
        *(f"{n}: {NAMES[k]}" for n, k in uniforms.items()),
    ]
    levels = rng.choice((1, 1, 2, 2, 3, 4))
    shape = (*tuple(rng.randint(1, 3) for _ in range(levels - 1)), rng.choice((1, 2, 5, 9)))
    first = rng.choice((1, 2, 7, 17, 33))
    longest = rng.choice((1, 3, 6))
    items = f"lw.ragged(I.array({record(rng, item, 'total')}, layout={layout(rng, item)}), counts=counts).to(device)"
    given = (
        [f"D.array(device=device, layout={layout(rng, template)}, {record(rng, template, str(first))})"]
        if dense
        else []
    )
    given.append(items)
    given += [
        f"lw.ragged({array(rng, k, f'({WINDOW + 1} * total,)')}, counts=[{WINDOW + 1}] * total).to(device)"
        for k in rows.values()
    ]
    named = [f"{n}={value(rng, k)}" for n, k in uniforms.items()]
    records = [line for name, fields in (("D", template), ("I", item)) if fields for line in (
        "@lw.record", f"class {name}:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", "")]  # fmt: skip
    text = [
        *records, *helpers, "", "", "@lw.segmentwise", f"def kernel({', '.join(typed)}){spelled(results)}:", *indented(lines), "", "",
        f"counts = np.random.default_rng({rng.randrange(1000)}).integers(0, {longest + 1}, {shape})", "counts.flat[0] += 1", "total = int(counts.sum())", "", "",
        "def arguments(device):", *indented([f"return [{', '.join(given)}], dict({', '.join(named)})"]),
    ]  # fmt: skip
    return "\n".join(text).lstrip("\n") + "\n"


def _element(rng: Random, w: Writer, name: str, windowed: bool) -> Callable[[Block], str]:
    """One that is there: what lies outside is not a number."""

    def text(b: Block) -> str:
        if windowed:
            return f"{name}[{rng.randrange(WINDOW)}]"
        return f"{name}[{rng.choice((str(rng.randrange(WINDOW)), f'lw.i32({w.plain_leaf(b, t.I32)}) & {WINDOW - 1}'))}]"

    return text


def _length(name: str) -> Callable[[Block], str]:
    return lambda b: f"lw.i32(len({name}))"


PATTERN = Pattern("segments", write)
