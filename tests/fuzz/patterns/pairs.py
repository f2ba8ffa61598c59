"""Pairwise programs: every reduction, one record or two, tables, the element itself; also through searches, which must meet the same sources."""

from __future__ import annotations

from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.elements import table_atoms
from tests.fuzz.patterns.written import Pattern, array, layout, record, traits, value
from tests.fuzz.programs import FLOATS, NAMES, NUMBERS, Atom, Block, Writer, indented

REDUCTIONS = (
    "{}",
    "{}",
    "lw.Min[{}]",
    "lw.Max[{}]",
    "lw.ArgMin[{}]",
    "lw.ArgMax[{}]",
    "lw.KMin[{}, 3]",
    "lw.ArgKMin[{}, 2]",
)
TRUTHS = ("lw.Any", "lw.All", "lw.Count")
SEARCHED = """

def run(device, plan=None):
    with lw.device(device):
        given, named = arguments(device)
        found = []
        for search in [lw.AllPairs(**options)] if device == "python" else searches:
            f = kernel.using(search=search)
            found.append(off([f(*given, **named) if plan is None else f.bind(*given, **named, plan=plan)()]))
        if device == "python":
            found *= len(searches)
        return [x for each in found for x in each]


def compiled(device, plan=None):
    with lw.device(device):
        given, named = arguments(device)
        return kernel.using(search=searches[0]).compile(*given, **named)
"""


def write_pairs(rng: Random) -> str:
    """Over all pairs."""
    return _write(rng, searched=False)


def write_searched(rng: Random) -> str:
    """Over what a search finds."""
    return _write(rng, searched=True)


def _write(rng: Random, *, searched: bool) -> str:
    w = Writer(rng, traits(rng, pattern="pairwise"))
    position = t.Vector(rng.choice(FLOATS), rng.choice((2, 3)))
    fields: dict[str, t.ValueType] = {"f0": position} if searched else {}
    fields |= {f"f{n}": w.type() for n in range(len(fields), rng.randint(2, 5))}
    uniforms = {f"p{n}": w.scalar() for n in range(rng.choice((0, 1, 2)))}
    tables = {} if rng.random() < 0.7 else {"t0": (rng.choice(NUMBERS), rng.choice((1, 2)))}
    helpers = [line for _ in range(rng.choice((0, 1, 2))) for line in w.helper()]
    results: list[t.ValueType] = []
    annotations: list[str] = []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.2:
            results.append(t.BOOL)
            annotations.append(rng.choice(TRUTHS))
            continue
        kind = w.type()
        kind = t.I32 if kind == t.BOOL else kind
        form = rng.choice(REDUCTIONS[:6] if isinstance(kind, t.Vector) else REDUCTIONS)
        results.append(kind)
        annotations.append(form.format(NAMES[kind]))
    same, count = rng.random() < 0.5, rng.choice((1, 3, 9, 13) if not searched else (3, 9, 30))
    sources = count if same else rng.choice((1, 4, 11) if not searched else (4, 25))
    atoms = table_atoms(rng, w, tables, 3)
    if rng.random() < 0.25:
        atoms += [Atom(t.I32, lambda b: rng.choice(("lw.index_of(target)", "lw.index_of(source)")))]
    known: dict[str, t.ValueType] = {f"{r}.{n}": k for r in ("target", "source") for n, k in fields.items()} | uniforms
    b = Block({}, {n: k for n, k in known.items() if rng.random() < 0.9}, atoms=atoms, pair=True)
    w.budget = rng.choice((15, 30, 50))
    lines = w.block(b, rng.randint(1, 4), tuple(results))
    w.budget = max(w.budget, 15)
    lines += w.returning(b, tuple(results))
    typed = [
        "target: R",
        "source: R",
        *(f"{n}: {NAMES[k]}" for n, k in uniforms.items()),
        *(f"{n}: lw.Array{d}[{NAMES[k]}]" for n, (k, d) in tables.items()),
    ]
    shown = annotations[0] if len(annotations) == 1 else f"tuple[{', '.join(annotations)}]"
    made = [
        f"R.array(device=device, layout={layout(rng, fields)}, {record(rng, fields, str(n))})" for n in (count, sources)
    ]
    named = [f"{n}={value(rng, k)}" for n, k in uniforms.items()]
    named += [f"{n}=on(device, {array(rng, k, str(tuple(3 + i for i in range(d))))})" for n, (k, d) in tables.items()]
    text = [
        "@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", "", *helpers, "", "", "@lw.pairwise",
        f"def kernel({', '.join(typed)}) -> {shown}:", *indented(lines), "", "", "def arguments(device):",
        *indented([f"first = {made[0]}", f"return [first, {'first' if same else made[1]}], dict({', '.join(named)})"]),
    ]  # fmt: skip
    return "\n".join(text) + "\n" + (_searches(rng, position, sources) if searched else "")


def _searches(rng: Random, position: t.Vector, sources: int) -> str:
    """The same sources through every structure: all within a radius, or so many of the nearest."""
    k = rng.choice((None, None, 1, 2)) if sources > 2 else None
    radius = rng.choice((0.7, 1.1, 2.3, 3.9))
    world = rng.choice(("lw.Open()", "lw.Open()", f"lw.Periodic({(8.25,) * position.length}, origin=-4.125)"))
    options = f'dict(radius={radius}, position="f0", world={world}' + (f", k={k})" if k else ")")
    names = ["lw.StaticGrid(**options)", "lw.DynamicGrid(**options)", "lw.AllPairs(**options)"]
    names.append("lw.Nearest(**options)" if k else "lw.Neighbors(**options)")
    names.append(
        f"lw.StaticGrid(**options, cells={rng.choice((1, 2, 3))})"
        if "Open" in world
        else f"lw.DynamicGrid(**options, leaf={rng.choice((4, 16))})"
    )
    chosen = rng.sample(names, 2)
    return SEARCHED + f"\n\nplans, explains = False, True\noptions = {options}\nsearches = [{', '.join(chosen)}]\n"


PAIRS, SEARCHES = Pattern("pairs", write_pairs), Pattern("searches", write_searched)
