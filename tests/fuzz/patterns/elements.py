"""Elementwise programs over records or arrays of any shape: tables, values between their elements, indices, random
numbers, scatters, sums.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.written import Pattern, array, layout, record, scatter, spelled, traits, value
from tests.fuzz.programs import FLOATS, NAMES, NUMBERS, Atom, Block, Writer, indented

EXPECTED = """
def expected():
    given, named = arguments("python")
    kinds, rows = kernel.signature.parameters, []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for place in np.ndindex(shape):
            own = [x[place if n else place[0]] for n, x in zip(whole, given)]
            out = kernel.python(*own, **named)
            out = [] if out is None else list(out) if isinstance(out, tuple) else [out]
            row = [to_python_value(x, k) for x, k in zip(out, kernel.signature.results or [])]
            rows.append(row + [getattr(own[0], f.name) for f in kinds["e"]] if not whole[0] else row)
    columns = [np.array([np.array(x) for x in column]) for column in zip(*rows)]
    results = [c.reshape(*shape, *c.shape[1:]) for c in columns[: len(kernel.signature.results or [])]]
    return results + columns[len(results) :] + [off(x)[0] for n, x in zip(whole, given) if n] + off(list(named.values()))
"""


def table_atoms(rng: Random, w: Writer, tables: dict[str, tuple[t.Scalar, int]], lengths: int) -> list[Atom]:
    """Elements of tables, and values between them."""

    def read(name: str, dimensions: int) -> Callable[[Block], str]:
        return lambda b: f"{name}[{', '.join(f'{w.plain_leaf(b, t.I32)} % {lengths + d}' for d in range(dimensions))}]"

    def between(name: str, kind: t.Scalar, dimensions: int) -> Callable[[Block], str]:
        def text(b: Block) -> str:
            edge = rng.choice(("", *(f', edge="{e}"' for e in ("clamp", "repeat", "mirror", "zero"))))
            return f"tame(lw.interpolate({name}, {', '.join(w.plain_leaf(b, kind) for _ in range(dimensions))}{edge}))"

        return text

    atoms = [Atom(t.computed(k), read(n, d)) for n, (k, d) in tables.items()]
    return atoms + [Atom(k, between(n, k, d)) for n, (k, d) in tables.items() if k in FLOATS]


def drawn_atoms(rng: Random, w: Writer) -> list[Atom]:
    """Random numbers, which have the same bits everywhere."""
    seed = rng.randrange(100)
    return [
        Atom(t.I32, lambda b: f"lw.random_integer(-5, 9, {seed}, {w.plain_leaf(b, t.I32)})"),
        Atom(t.F32, lambda b: f"tame(lw.random({seed}, {w.plain_leaf(b, rng.choice((t.I32, t.U32, t.I64)))}) * 8.0)"),
        Atom(t.F64, lambda b: f"tame(lw.drandom({seed}, {w.plain_leaf(b, t.I32)}, 3) * 8.0)"),
    ]


def write(rng: Random) -> str:
    """One program."""
    w = Writer(rng, traits(rng, pattern="elementwise"))
    records, lengths = rng.random() < 0.6, rng.randint(1, 4)
    fields = {f"f{n}": w.small() or w.type() for n in range(rng.randint(1, 5))} if records else {}
    arrays = {f"q{n}": w.small() or w.type() for n in range(rng.randint(0 if records else 1, 3))}
    uniforms = {f"p{n}": w.type() for n in range(rng.choice((0, 1, 2)))}
    tables = {
        f"t{n}": (w.small() or rng.choice((*NUMBERS, *FLOATS)), rng.choice((1, 1, 2, 3)))
        for n in range(rng.choice((0, 1, 2)))
    }
    scattered = {
        f"d{n}": (rng.choice(NUMBERS), rng.choice(("add", "min", "max"))) for n in range(rng.choice((0, 0, 0, 1, 2)))
    }
    helpers = [line for _ in range(rng.choice((0, 1, 2))) for line in w.helper()]
    results = tuple(w.small() or w.type() for _ in range(rng.randint(0 if records or scattered else 1, 3)))
    shape = (
        rng.choice(("(1,)", "(5,)", "(19,)"))
        if records or rng.random() < 0.5
        else rng.choice(("(2, 3)", "(3, 1, 4)", "(7, 5)"))
    )
    first = "e" if records else next(iter(arrays))
    indexed = rng.random() < 0.3
    drawn = rng.random() < 0.25
    atoms = table_atoms(rng, w, tables, lengths) + (drawn_atoms(rng, w) if drawn else [])
    atoms += [Atom(t.I32, lambda b: f"lw.index_of({first})")] if indexed else []
    ignored = {n for n in (*arrays, *uniforms) if rng.random() < 0.12}
    known = {n: k for n, k in (arrays | uniforms).items() if n not in ignored}
    # What scatters is a thread, which does not return from within a loop.
    b = Block({}, known, fields={f"e.{n}": k for n, k in fields.items()}, atoms=atoms, leaves=not scattered)
    w.budget = rng.choice((20, 40, 70))
    lines = w.block(b, rng.randint(2, 6), results)
    for name, (kind, operation) in scattered.items():
        at = f"{w.leaf(b, t.I32)} % 5"
        lines.append(scatter(rng, w, name, at, kind, operation, w.expression(b, kind, 2)))
    w.budget = max(w.budget, 10 * len(results))
    lines += w.returning(b, results) if results else []
    typed = ["e: R"] if records else []
    typed += [f"{n}: {NAMES[k]}" for n, k in (arrays | uniforms).items()]
    typed += [f"{n}: lw.Array{d}[{NAMES[k]}]" for n, (k, d) in tables.items()]
    typed += [f"{n}: lw.Array1[{NAMES[k]}]" for n, (k, _) in scattered.items()]
    count = shape.strip("(),") if records else ""
    given = [f"R.array(device=device, layout={layout(rng, fields)}, {record(rng, fields, count)})"] if records else []
    given += [f"on(device, {array(rng, k, shape)})" for k in arrays.values()]
    whole = [*([False] if records else []), *[True for _ in arrays]]
    named = [f"{n}={value(rng, k)}" for n, k in uniforms.items()]
    named += [
        f"{n}=on(device, {array(rng, k, str(tuple(lengths + i for i in range(d))))})" for n, (k, d) in tables.items()
    ]
    named += [f"{n}=on(device, {array(rng, k, '(5,)')})" for n, (k, _) in scattered.items()]
    head = (
        ["@lw.record", "class R:", *indented([f"{n}: {NAMES[k]}" for n, k in fields.items()]), "", ""]
        if records
        else []
    )
    text = [
        *head, *helpers, "", "", "@lw.elementwise", f"def kernel({', '.join(typed)}){spelled(results)}:", *indented(lines or ["pass"]), "", "",
        f"shape, whole = {shape}, {whole}", "", "", "def arguments(device):", *indented([f"return [{', '.join(given)}], dict({', '.join(named)})"]),
    ]  # fmt: skip
    vectors = any(isinstance(k, t.Vector) for k in (arrays | uniforms).values())
    kinds = (*fields.values(), *arrays.values(), *results, *(k for k, _ in tables.values()))
    small = any(k in t.STORED for k in kinds)  # which wrap in Python
    python = w.traits.plain and not indexed and not vectors and not drawn and not small
    return "\n".join(text).lstrip("\n") + "\n" + (EXPECTED if python else "")


PATTERN = Pattern("elements", write)
