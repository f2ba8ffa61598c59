"""Threadwise programs: one to three indices, arrays of one to three dimensions, loops, branches, local arrays,
scatters, edges, sums.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.written import Pattern, array, scatter, traits, value
from tests.fuzz.programs import NAMES, NUMBERS, Atom, Block, Writer, indented

EXPECTED = """
def expected():
    given, named = arguments("python")
    grid = named.pop("grid")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for place in np.ndindex(*(grid if isinstance(grid, tuple) else (grid,))):
            kernel.python(*(np.int32(x) for x in place), **named)
    return off(list(named.values()))
"""


@dataclass(frozen=True)
class Table:
    """An array that is read: its name, type and the lengths of its dimensions as text."""

    name: str
    kind: t.Scalar
    shape: tuple[str, ...]


def _index(rng: Random, places: Mapping[str, str], length: str) -> str:
    """An index that surely lies within a length."""
    name, other = rng.choice(list(places)), rng.choice(list(places))
    factor, shift = rng.choice((1, 1, 1, 2, 3, -1, -2)), rng.randint(-3, 3)
    affine = f"{name} * {factor} + {shift}" if factor != 1 else f"{name} + {shift}" if shift else name
    forms = (
        f"({affine} + {other}) % {length}", f"lw.clamp({affine}, 0, {length} - 1)", f"({affine}) % {length}",
        f"lw.min({name} + {abs(shift)}, {length} - 1) % {length}", f"{length} - 1 - {name} % {length}", f"t[{other} % len(t)] % {length}",
    )  # fmt: skip
    return rng.choice(forms)


def _direct(rng: Random, table: Table, places: Mapping[str, str]) -> str | None:
    """Indices of the grid or of loops as they are, where the dimension is as long as they go: what passes know how to
    share.
    """
    chosen: list[str] = []
    for length in table.shape:
        fitting = [i for i, below in places.items() if below == length]
        if not fitting:
            return None
        chosen.append(rng.choice(fitting))
    return f"{table.name}[{', '.join(chosen)}]"


def write(rng: Random) -> str:
    """One program."""
    w = Writer(rng, traits(rng, vectors=0.2, pattern="threadwise"))
    rank = rng.choice((1, 1, 2, 2, 2, 3))
    indices = ("z", "y", "x")[3 - rank :]
    lengths = {1: ("n",), 2: ("m", "n"), 3: ("l", "m", "n")}[rank]
    most = {1: 40, 2: 9, 3: 5}[rank]
    sizes = {k: rng.choice((1, 2, 3, most - 1, most, most)) for k in ("l", "m", "n")}
    if rng.random() < 0.3:
        sizes = dict.fromkeys(sizes, sizes["n"])
    main = rng.choice((t.F32, t.F32, t.F64, t.I32, t.I64, t.U32))
    tables = [Table("t", t.I32, ("n",))]
    for name in ("a", "b", "v", "q")[: rng.randint(1, 4)]:
        dimensions = 1 if name in "vq" else rng.choice((1, 2, 2, 3) if rank == 3 else (1, 2, 2))
        kind = t.BOOL if name == "q" else w.small() or (main if rng.random() < 0.7 else rng.choice(NUMBERS))
        tables.append(
            Table(name, kind, tuple(rng.choice(("m", "n") if rank < 3 else ("l", "m", "n")) for _ in range(dimensions)))
        )
    places = dict(zip(indices, lengths, strict=True))
    uniforms: dict[str, t.ValueType] = {
        n: rng.choice((main, t.BOOL, *NUMBERS)) for n in ("p", "w")[: rng.randint(0, 2)]
    }

    def atom(table: Table) -> Callable[[Block], str]:
        def text(b: Block) -> str:
            whole = _direct(rng, table, b.places) if rng.random() < 0.55 else None
            return whole or f"{table.name}[{', '.join(_index(rng, b.places, s) for s in table.shape)}]"

        return text

    helpers = [line for _ in range(rng.choice((0, 0, 1, 1, 2, 3))) for line in w.helper()]
    atoms = [Atom(t.computed(x.kind), atom(x)) for x in tables]
    atoms.append(Atom(t.I32, lambda b: f"lw.i32({rng.choice(list(b.places))})"))
    outs = [(f"c{n}", w.small() or rng.choice((main, main, *NUMBERS, t.BOOL))) for n in range(rng.randint(1, 2))]
    scattered = [
        (f"d{n}", rng.choice(NUMBERS), rng.choice(("add", "add", "min", "max")))
        for n in range(rng.choice((0, 0, 1, 2)))
    ]
    total = not scattered and rng.random() < 0.12
    own = (
        not total and rank == 1 and rng.random() < 0.3
    )  # a column of its own, of which later rounds read what earlier ones wrote
    turns = {"n": "n", "m": "m", "3": "", f"{indices[-1]} + 1": lengths[-1], indices[0]: lengths[0]}
    turns |= {f"{x.name}.shape[{axis}]": length for x in tables for axis, length in enumerate(x.shape)}
    body = Block({}, dict(uniforms), atoms=atoms, places=places, turns=turns, leaves=False)
    w.budget = rng.choice((20, 40, 70))
    lines: list[str] = []
    results = (rng.choice(NUMBERS),) if total else ()
    for kind in dict.fromkeys([main, *(t.computed(k) for _, k in outs)]):
        name = w.new("s")
        lines.append(f"{name} = {w.expression(body, kind, 2)}")
        body.variables[name] = kind
    lines += _edge(rng, w, body, indices, lengths, outs) if not total and rng.random() < 0.35 else []
    lines += w.block(body, rng.randint(1, 4), results)
    w.budget = max(w.budget, 20)
    lines += _window(rng, w, body, tables, lengths, indices, main) if rng.random() < 0.3 else []
    lines += _reduction(rng, w, body, main) if rng.random() < 0.6 else []
    place = ", ".join(indices)
    for name, kind, operation in scattered:
        at = _index(rng, places, "5")
        lines.append(scatter(rng, w, name, at, kind, operation, w.expression(body, kind, 2)))
    if own:
        kind = main
        lines += [
            f"for i in range({rng.choice(('m', '4'))}):", f"    g = {w.expression(body, kind, 1)}", f"    for j in range({rng.choice(('i', 'i', '3'))}):",
            f"        g {rng.choice('+-')}= {w.tamed(kind, 'r[j, x]')}", f"    r[i, x] = {w.tamed(kind, 'g')}",
        ]  # fmt: skip
    if total:
        lines += w.returning(body, results)
    else:
        for name, kind in outs:
            constant = rng.random() < 0.1
            stored = w.literal(kind) if constant else w.expression(body, kind, 2)
            sign = "=" if kind in (t.BOOL, *t.STORED) else rng.choice(("=", "=", "+="))
            lines.append(f"{name}[{place}] {sign} {stored}")
    return _text(
        rng,
        helpers,
        lines,
        indices,
        lengths,
        sizes,
        tables,
        outs,
        scattered,
        uniforms,
        main if own else None,
        results,
        w.traits.plain and not any(k in t.STORED for k in (*(x.kind for x in tables), *(k for _, k in outs))),
    )


def _edge(
    rng: Random,
    w: Writer,
    b: Block,
    indices: tuple[str, ...],
    lengths: tuple[str, ...],
    outs: list[tuple[str, t.Scalar]],
) -> list[str]:
    """Threads at the edges end early, or the others read their neighbours."""
    axis = rng.randrange(len(indices))
    index, length = indices[axis], lengths[axis]
    test = rng.choice(
        (f"{index} == 0 or {index} == {length} - 1", f"{index} < 1", f"{index} >= {length} - 1", f"{index} % 3 == 2")
    )
    name, kind = rng.choice(outs)
    place = ", ".join(indices)
    end = [] if rng.random() < 0.3 else ["return"]
    return [f"if {test}:", *indented([f"{name}[{place}] = {w.expression(b, kind, 1)}", *end])] if name else []


def _reduction(rng: Random, w: Writer, b: Block, kind: t.Scalar) -> list[str]:
    """A loop that gathers: rounds that threads or lanes may share."""
    k, s = w.new("k"), w.new("s")
    inner = b.inner(loop=True)
    turns, inner.places[k] = rng.choice(list(b.turns.items()))
    e = w.expression(inner, kind, 2)
    if kind.is_float:
        e = w.tamed(kind, e)
    forms = [
        [f"{s} += {e}"],
        [f"{s} -= {e}"],
        [f"{s} = lw.min({s}, {e})"],
        [f"{s} = lw.max({s}, {e})"],
        [f"{k}_ = {e}", f"if {k}_ > {s}:", f"    {s} = {k}_"],
    ]
    if not kind.is_float:
        forms.append([f"{s} *= {e}"])
    place, test = f"{s}_at", rng.choice(("<", "<=", ">", ">="))
    carrying = [f"{k}_ = {e}", f"if {k}_ {test} {s}:", f"    {s} = {k}_", f"    {place} = lw.i32({k})"]
    body = rng.choice((*forms, carrying, carrying))
    if rng.random() < 0.3:
        body = [f"if {w.condition(inner, 1)}:", *indented(body)]
    b.variables[s] = kind
    begin = [f"{s} = {w.literal(kind)}"]
    if any(place in line for line in body):
        b.variables[place] = t.I32
        begin.append(f"{place} = lw.i32(-1)")
    return [*begin, f"for {k} in range({turns}):", *indented(body)]


def _window(
    rng: Random, w: Writer, b: Block, tables: list[Table], lengths: tuple[str, ...], indices: tuple[str, ...], kind: t.Scalar
) -> list[str]:  # fmt: skip
    """A loop an axis over the neighbours of a thread's element: what passes take for the window of a stencil."""
    fitting = [x for x in tables if x.kind != t.BOOL and x.shape == lengths[-len(x.shape) :]]
    if not fitting:
        return []
    table, radius, edge = rng.choice(fitting), rng.choice((1, 1, 2)), rng.choice(("guarded", "clamped", "wrapped"))
    own, s = indices[-len(table.shape) :], w.new("s")
    loops, places = [], []
    for index, length in zip(own, table.shape, strict=True):
        k = w.new("k")
        centred = rng.random() < 0.5
        loops.append(f"for {k} in range({f'-{radius}, {radius + 1}' if centred else 2 * radius + 1}):")
        at = f"{index} + {k}" if centred else f"{index} + {k} - {radius}"
        forms = {
            "guarded": at,
            "clamped": f"lw.clamp({at}, 0, {length} - 1)",
            "wrapped": f"({at} + {radius} * {length}) % {length}",
        }
        places.append(forms[edge])
    e = f"{table.name}[{', '.join(places)}]"
    e = e if t.computed(table.kind) == kind else f"{NAMES[kind]}({e})"
    e = w.tamed(kind, e) if kind.is_float else e
    lines = [rng.choice((f"{s} += {e}", f"{s} -= {e}", f"{s} = lw.max({s}, {e})", f"{s} += {e} * {w.literal(kind)}"))]
    for loop in reversed(loops):
        lines = [loop, *indented(lines)]
    inside = (f"{i} >= {radius} and {i} < {n} - {radius}" for i, n in zip(own, table.shape, strict=True))
    if edge == "guarded":
        lines = [f"if {' and '.join(inside)}:", *indented(lines)]
    b.variables[s] = kind
    return [f"{s} = {w.literal(kind)}", *lines]


def _text(
    rng: Random, helpers: list[str], lines: list[str], indices: tuple[str, ...], lengths: tuple[str, ...], sizes: dict[str, int],
    tables: list[Table], outs: list[tuple[str, t.Scalar]], scattered: list[tuple[str, t.Scalar, str]], uniforms: dict[str, t.ValueType],
    own: t.Scalar | None, results: tuple[t.ValueType, ...], plain: bool,
) -> str:  # fmt: skip
    grid = "({},)".format(", ".join(lengths))
    columns = "({}, {})".format(rng.choice(("m + 4", "max(m, 4)")), "n") if own else ""
    written = [] if results else outs
    typed = [f"{x.name}: lw.Array{len(x.shape)}[{NAMES[x.kind]}]" for x in tables]
    typed += [f"{n}: lw.Array{len(indices)}[{NAMES[k]}]" for n, k in written]
    typed += [f"{n}: lw.Array1[{NAMES[k]}]" for n, k, _ in scattered]
    typed += [f"r: lw.Array2[{NAMES[own]}]"] if own else []
    typed += [f"{n}: {NAMES[k]}" for n, k in uniforms.items()]
    typed += [f"{n}: lw.i32" for n in ("l", "m", "n")]
    given = [f"{x.name}=on(device, {array(rng, x.kind, '({},)'.format(', '.join(x.shape)))})" for x in tables]
    given += [f"{n}=on(device, {array(rng, k, grid)})" for n, k in written]
    given += [f"{n}=on(device, {array(rng, k, '(5,)')})" for n, k, _ in scattered]
    given += [f"r=on(device, {array(rng, own, columns)})"] if own else []
    given += [f"{n}={value(rng, k)}" for n, k in uniforms.items()]
    given += [f"{n}=np.int32({n})" for n in ("l", "m", "n")]
    given.append(f"grid={grid if len(lengths) > 1 else lengths[0]}")
    shown = f" -> {NAMES[results[0]]}" if results else ""
    head = [
        *helpers,
        "",
        "",
        "@lw.threadwise",
        f"def kernel({', '.join([*(f'{i}: lw.index' for i in indices), *typed])}){shown}:",
    ]
    text = [
        *head, *indented(lines), "", "", "def arguments(device):",
        *indented([f"l, m, n = {sizes['l']}, {sizes['m']}, {sizes['n']}", f"return [], dict({', '.join(given)})"]),
    ]  # fmt: skip
    return "\n".join(text).lstrip("\n") + "\n" + ("" if results or not plain else EXPECTED)


PATTERN = Pattern("threadwise", write)
