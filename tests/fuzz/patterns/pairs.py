"""Pairwise programs: every reduction, one record or two, tables, the element itself; also through searches, which must
meet the same sources.
"""

from __future__ import annotations

import re
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
PERIOD = 8.25  # no two places, multiples of 1/4, are half of it apart: one image is the nearest
TIED_PERIOD = 10.0  # nor are two of few places, multiples of 2
SEARCHED = """

of_one_call = False

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


def called(device):
    given, named = arguments(device)
    return kernel.using(search=searches[0]), given, named
"""

EXPECTED = """

def reduced(form, values):
    whole = values.dtype.kind in "iub"
    if form == "Any" or form == "All":
        return np.array(values.any() if form == "Any" else values.all())
    if form == "Count":
        return np.int32(np.count_nonzero(values))
    if not form:
        wide = values.sum(0, dtype=np.int64 if whole else np.float64)
        return wide.astype(values.dtype)
    if values.ndim == 2:
        return np.array([reduced(form, column) for column in values.T])
    largest = "Max" in form
    worst = (np.iinfo(values.dtype).min if largest else np.iinfo(values.dtype).max) if whole else -np.inf if largest else np.inf
    values = np.where(np.isnan(values), worst, values).astype(values.dtype)  # what is no number is left out
    if form in ("Min", "Max"):
        return (np.max if largest else np.min)(values, initial=worst)
    ordered = np.argsort(~values if whole and largest else -values if largest else values, kind="stable")
    ordered = ordered if whole else ordered[values[ordered] != worst]
    places = form.startswith("Arg")
    k = 3 if form == "KMin" else 2 if form == "ArgKMin" else 1
    first = np.full(k, -1 if places else worst, np.int32 if places else values.dtype)
    first[: len(ordered)] = (ordered if places else values[ordered])[:k]
    return first[0] if form in ("ArgMin", "ArgMax") else first


def reduced_places(form, values, sources):
    found = reduced(form, values)
    return np.where(found >= 0, np.append(sources, 0)[found], -1).astype(np.int32)[()] if form.startswith("Arg") else found


def expected():
    given, named = arguments("python")
    targets = list(given[0])
    sources = targets if given[1] is given[0] else list(given[1])
    kinds, rows = kernel.signature.results, []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for target in targets:
            seen, met = meeting(target, sources)
            pairs = [kernel.python(target, source, **named) for source in seen]  # all, for the types of no pair
            columns = zip(*(out if isinstance(out, tuple) else (out,) for out in pairs))
            values = [np.array([to_python_value(x, k) for x in c])[met] for c, k in zip(columns, kinds)]
            rows.append([reduced_places(form, v, np.flatnonzero(met)) for form, v in zip(forms, values)])
    results = [np.array(column) for column in zip(*rows)] * times
    return results + (off([given, list(named.values())]) if times == 1 else [])
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
    tied = searched and rng.random() < 0.5  # few places: many are one, or equally far from a third
    if tied:
        made = [re.sub(r"\bf0=(drawn\(.*?\)\))", r"f0=np.round(\1 / 2) * 2", m, count=1) for m in made]
    named = [f"{n}={value(rng, k)}" for n, k in uniforms.items()]
    named += [f"{n}=on(device, {array(rng, k, str(tuple(3 + i for i in range(d))))})" for n, (k, d) in tables.items()]
    text = [
        "@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", "", *helpers, "", "", "@lw.pairwise",
        f"def kernel({', '.join(typed)}) -> {shown}:", *indented(lines), "", "", "def arguments(device):",
        *indented([f"first = {made[0]}", f"return [first, {'first' if same else made[1]}], dict({', '.join(named)})"]),
    ]  # fmt: skip
    forms = [
        a.removeprefix("lw.").split("[")[0] if a.startswith(("lw.M", "lw.A", "lw.K", "lw.C")) else ""
        for a in annotations
    ]
    told = (
        ""
        if not w.traits.plain or any("index_of" in line for line in lines)
        else f"\n\nforms, times = {forms}, {2 if searched else 1}\n" + EXPECTED
    )
    if not searched:
        return "\n".join(text) + "\n" + told + (ALL if told else "")
    return "\n".join(text) + "\n" + _searches(rng, position, sources, told, tied)


ALL = """

def meeting(target, sources):
    return sources, np.ones(len(sources), bool)
"""

# By brute force: a source is seen at its nearest image, and met within the radius; of many the nearest ones, of equally
# near
# ones those before others, and never the element itself.
FOUND = """

def imaged(target, source):
    apart = np.array(source.f0, np.float64) - np.array(target.f0, np.float64)
    turns = np.round(apart / period) if period else np.zeros_like(apart)
    if not turns.any():
        return source
    image = source.copy()
    image.f0 = type(source.f0)(*(np.array(source.f0, np.float64) - turns * period))
    return image


def meeting(target, sources):
    seen = [imaged(target, source) for source in sources]
    apart = np.array([np.array(s.f0, np.float64) - np.array(target.f0, np.float64) for s in seen])
    squared = (apart * apart).sum(1)
    met = squared < options["radius"] ** 2
    if "k" in options:
        met &= np.array([source is not target for source in sources])
        nearest = [n for n in np.argsort(squared, kind="stable") if met[n]][: options["k"]]
        met = np.isin(np.arange(len(sources)), nearest)
    return seen, met
"""


def _searches(rng: Random, position: t.Vector, sources: int, told: str, tied: bool) -> str:
    """The same sources through every structure: all within a radius, or so many of the nearest."""
    counts = (None, 1, 2, 3, 5, 8) if tied else (None, None, 1, 2)
    k = rng.choice([n for n in counts if n is None or n < sources])
    # of few places some are exactly as far as the radius, and not met
    radius = rng.choice((2.0, 2.3, 3.9, 4.0, 4.5) if tied else (0.7, 1.1, 2.3, 3.9))
    period = TIED_PERIOD if tied else PERIOD
    world = rng.choice(("lw.Open()", "lw.Open()", f"lw.Periodic({(period,) * position.length}, origin={-period / 2})"))
    options = f'dict(radius={radius}, position="f0", world={world}' + (f", k={k})" if k else ")")
    names = ["lw.StaticGrid(**options)", "lw.DynamicGrid(**options)", "lw.AllPairs(**options)"]
    names.append("lw.Nearest(**options)" if k else "lw.Neighbors(**options)")
    names.append(
        f"lw.StaticGrid(**options, cells={rng.choice((1, 2, 3))})"
        if "Open" in world
        else f"lw.DynamicGrid(**options, leaf={rng.choice((4, 16))})"
    )
    chosen = rng.sample(names, 2)
    expected = told + FOUND + f"\n\nperiod = {0 if 'Open' in world else period}\n" if told else ""
    return SEARCHED + expected + f"\n\noptions = {options}\nsearches = [{', '.join(chosen)}]\n"


PAIRS, SEARCHES = Pattern("pairs", write_pairs), Pattern("searches", write_searched)
