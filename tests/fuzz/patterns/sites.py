"""Programs over lattices: stencils of fields, flows of populations with kinds, walls and fields, and lattices that are
coupled.
"""

from __future__ import annotations

from random import Random

from lanewise.language import types as t
from tests.fuzz.patterns.written import DTYPES, Pattern, seed, traits, value
from tests.fuzz.programs import NAMES, Atom, Block, Traits, Writer, indented

LATTICES = {"D1Q3": (3, 1), "D2Q5": (5, 2), "D2Q9": (9, 2), "D3Q7": (7, 3), "D3Q19": (19, 3)}
FORMS = ("in-place", "pull", "push")
EXPECTED = """

def expected():
    fields = {n: x.copy() for n, x in start.items()}
    rules = ["wrap" if edges.get(axis, "periodic") == "periodic" else "symmetric" for axis in "xyz"[: len(shape)]][::-1]
    for _ in range(steps):
        near = {}
        for name, x in fields.items():
            for axis, rule in enumerate(rules):
                x = np.pad(x, [(1, 1) if a == axis else (0, 0) for a in range(len(shape))], mode=rule)
            near[name] = x
        after = {n: x.copy() for n, x in fields.items()}
        for place in np.ndindex(*shape):
            around = {n: np.array([x[tuple(p + 1 + d for p, d in zip(place, v[::-1]))] for v in lattice.velocities]) for n, x in near.items()}
            out = kernel.python(*around.values(), **values)
            for n, x in zip(kernel.fields, out if isinstance(out, tuple) else (out,)):
                after[n][place] = x
        fields = after
    return [fields[n] for n in kernel.fields]
"""
STENCIL = """

of_one_call = False

def sites_on(device, form=None):
    return kernel.sites(shape, mask=mask, edges=edges, layout=layouts[device == "python"], device=device, **{n: x for n, x in start.items() if n in kernel.fields})


def call_values(device):
    return {**values, **{n: on(device, x.reshape(-1)) for n, x in start.items() if n not in kernel.fields}}


def run(device, plan=None):
    sites = sites_on(device)
    kernel.run(sites, steps, **call_values(device), plan=plan)
    return off([kernel.field(sites, n) for n in kernel.fields])


def called(device):
    return kernel, [sites_on(device)], call_values(device)
"""
FLOW = """

of_one_call = False

def sites_on(device):
    form, layout = (forms[0], None) if device == "python" else (forms[1], layouts[1])
    sites = kernel.sites(shape, mask=mask, edges=edges, streaming=form, layout=layout, device=device)
    kernel.set_populations(sites, drawn(seed, real, (lattice.size, *shape)))
    return sites


def run(device, plan=None):
    sites = sites_on(device)
    kernel.run(sites, steps, **values, plan=plan)
    seen = kernel.populations(sites, **values)
    return off([seen, look(sites, **values)])


def called(device):
    return kernel, [sites_on(device)], values
"""
COUPLED = """

of_one_call = False

def run(device, plan=None):
    a, b = first.sites(shape, device=device, u=start), second.sites(shape, device=device, streaming=forms[device != "python"])
    second.set_populations(b, drawn(seed, "f4", (lattice.size, *shape)))
    both = lw.couple(first.stepper(a, seen=look.of(b), plan=plan), second.stepper(b, heat=peek.of(a), plan=plan))
    both.run(1)
    both.run(steps)
    return off([first.field(a, "u"), second.populations(b)])


def called(device):
    a, b = first.sites(shape, device=device, u=start), second.sites(shape, device=device, streaming=forms[1])
    return (first, [a], dict(seen=look.of(b))) if explained == "first" else (second, [b], dict(heat=peek.of(a)))
"""


def write_stencil(rng: Random) -> str:
    """Fields that are changed, others that are read, values; edges of all kinds, walls in a mask."""
    name, (size, dimension) = rng.choice(list(LATTICES.items()))
    w = Writer(rng, traits(rng, vectors=0.2, pattern="stencil"))
    real = rng.choice((t.F32, t.F32, t.F64))
    changed = rng.choice((1, 1, 2))
    fields = [f"u{n}" for n in range(changed + rng.choice((0, 0, 1)))]
    uniforms = {f"p{n}": w.scalar() for n in range(rng.choice((0, 1, 2)))}
    helpers = [line for _ in range(rng.choice((0, 1, 2))) for line in w.helper()]
    shape = _shape(rng, dimension)
    atoms = [Atom(real, _part(rng, n, size)) for n in fields]
    b = Block({}, dict(uniforms), atoms=atoms)
    w.budget = rng.choice((15, 30, 50))
    lines = _gathered(rng, w, b, name, fields, real) if rng.random() < 0.6 else []
    lines += w.block(b, rng.randint(1, 4), (real,) * changed)
    w.budget = max(w.budget, 12)
    lines.append(f"return {', '.join(w.tamed(real, w.expression(b, real, 2)) for _ in range(changed))}")
    typed = [f"{n}: lw.Field[{NAMES[real]}]" for n in fields] + [f"{n}: {NAMES[k]}" for n, k in uniforms.items()]
    shown = NAMES[real] if changed == 1 else f"tuple[{', '.join([NAMES[real]] * changed)}]"
    walled = rng.random() < 0.4
    edges = _edges(
        rng, dimension, ("periodic", "slip") if not walled else ("periodic", "slip", "outflow", "wall", "cold")
    )
    shape = _long_enough(shape, edges)
    walls = ['kernel.wall(1, "wall")', f'kernel.wall(2, "cold", {fields[0]}="level")'] if walled else []
    level = {"level": t.F32 if real == t.F32 else t.F64} if walled else {}
    mask = (
        f"np.random.default_rng({seed(rng)}).choice([0, 0, 0, 1, 2], {shape}).astype(np.uint8)"
        if walled and rng.random() < 0.5
        else "None"
    )
    start = ", ".join(f"{n}=drawn({seed(rng)}, {DTYPES[real]!r}, {shape})" for n in fields)
    values = ", ".join(
        [f"{n}={value(rng, k)}" for n, k in uniforms.items()] + [f"{n}={value(rng, k)}" for n, k in level.items()]
    )
    text = [
        f"lattice = lw.{name}", "", "", *helpers, "", "", "@lw.stencil(lattice)", f"def kernel({', '.join(typed)}) -> {shown}:", *indented(lines), "", "",
        *walls, f"shape, steps, mask, edges = {shape}, {rng.randint(1, 3)}, {mask}, {edges}",
        f"layouts = [{rng.choice(('None', 'lw.AoS()', 'lw.SoA()', 'lw.AoSoA(4)'))}, None]", f"start, values = dict({start}), dict({values})",
    ]  # fmt: skip
    early = any("return" in line for line in lines[:-1])
    python = w.traits.plain and not walled and not early and not any(isinstance(k, t.Vector) for k in uniforms.values())
    return "\n".join(text) + "\n" + STENCIL + (EXPECTED if python else "")


def write_flow(rng: Random) -> str:
    """Populations of every site, another function for another kind, walls, an observer; in every form of streaming."""
    name, (size, dimension) = rng.choice([x for x in LATTICES.items() if x[0] != "D1Q3"])
    w = Writer(rng, traits(rng, vectors=0.2, pattern="sitewise"))
    real = rng.choice((t.F32, t.F32, t.F64))
    annotation = "lw.populations" if real == t.F32 else "lw.dpopulations"
    uniforms = {f"p{n}": w.scalar() for n in range(rng.choice((0, 1, 2)))}
    helpers = [line for _ in range(rng.choice((0, 1, 2))) for line in w.helper()]
    shape = _shape(rng, dimension)
    typed = ", ".join([f"f: {annotation}", *(f"{n}: {NAMES[k]}" for n, k in uniforms.items())])
    bodies = [_collision(rng, w, name, size, real, uniforms) for _ in range(2)]
    kinds = rng.random() < 0.4
    walls = ['kernel.wall(2, "wall")'] if rng.random() < 0.5 else []
    rules = ("periodic", "slip", *(["wall"] if walls else []))
    options = [0, 0, 0, *([1] if kinds else []), *([2] if walls else [])]
    mask = (
        f"np.random.default_rng({seed(rng)}).choice({options}, {shape}).astype(np.uint8)"
        if len(options) > 3
        else "None"
    )
    b = Block({}, dict(uniforms), atoms=[Atom(real, _part(rng, "f", size))])
    w.budget = 15
    seen = w.expression(b, rng.choice((real, t.I32)), 2)
    seen_kind = NAMES[real] if not seen.startswith("lw.i32") else NAMES[t.I32]
    values = ", ".join(f"{n}={value(rng, k)}" for n, k in uniforms.items())
    text = [
        f"lattice, real = lw.{name}, {DTYPES[real]!r}", "", "", *helpers, "", "", "@lw.sitewise(lattice)", f"def kernel({typed}):", *indented(bodies[0]), "", "",
        *(["@kernel.kind(1, 'other')", f"def other({typed}):", *indented(bodies[1]), "", ""] if kinds else []), *walls, "", "",
        "@kernel.observer", f"def look({typed}) -> {NAMES[real]}:", f"    return {w.tamed(real, NAMES[real] + '(' + seen + ')')}" if seen_kind else "", "", "",
        f"shape, steps, mask, edges = {shape}, {rng.randint(1, 4)}, {mask}, {_edges(rng, dimension, rules)}",
        f"forms, layouts = {[rng.choice(FORMS), rng.choice(FORMS)]}, [None, {rng.choice(('None', 'lw.AoS()', 'lw.SoA()', 'lw.AoSoA(8)'))}]",
        f"seed, values = {seed(rng)}, dict({values})",
    ]  # fmt: skip
    return "\n".join(text) + "\n" + FLOW


def write_coupled(rng: Random) -> str:
    """A stencil and a flow, each of which reads what is observed of the other."""
    w = Writer(rng, Traits("sitewise", plain=True, vectors=False, exact=True, library=rng.random() < 0.2))
    name, size, dimension = rng.choice((("D2Q9", 9, 2), ("D2Q5", 5, 2), ("D3Q7", 7, 3)))
    helpers = [line for _ in range(rng.choice((0, 1))) for line in w.helper()]
    field = rng.random() < 0.5  # what is observed is read at the neighbours, or at the site
    seen = Atom(t.F32, _part(rng, "seen", size)) if field else Atom(t.F32, lambda b: "seen")
    b = Block({}, {}, atoms=[Atom(t.F32, _part(rng, "u", size)), seen])
    w.budget = 25
    first = w.block(b, rng.randint(0, 2), (t.F32,))
    first.append(f"return {w.tamed(t.F32, w.expression(b, t.F32, 3))}")
    second = _collision(rng, w, name, size, t.F32, {"heat": t.F32})
    looks = Block({}, {}, atoms=[Atom(t.F32, _part(rng, "f", size))])
    peeks = Block({}, {}, atoms=[Atom(t.F32, _part(rng, "u", size))])
    w.budget = 20
    text = [
        f"lattice = lw.{name}", "", "", *helpers, "", "", "@lw.stencil(lattice)",
        f"def first(u: lw.Field[lw.f32], seen: {'lw.Field[lw.f32]' if field else 'lw.f32'}) -> lw.f32:", *indented(first), "", "",
        "@lw.sitewise(lattice)", "def second(f: lw.populations, heat: lw.f32):", *indented(second), "", "",
        "@second.observer", "def look(f: lw.populations) -> lw.f32:", f"    return {w.tamed(t.F32, w.expression(looks, t.F32, 2))}", "", "",
        "@first.observer", "def peek(u: lw.Field[lw.f32]) -> lw.f32:", f"    return {w.tamed(t.F32, w.expression(peeks, t.F32, 2))}", "", "",
        f"shape, steps, seed = {_shape(rng, dimension)}, {rng.randint(1, 3)}, {seed(rng)}",
        f"explained = {rng.choice(('first', 'second'))!r}",
        f"start, forms = drawn({seed(rng)}, 'f4', shape), {[rng.choice(FORMS), rng.choice(FORMS)]}",
    ]  # fmt: skip
    return "\n".join(text) + "\n" + COUPLED


def _shape(rng: Random, dimension: int) -> tuple[int, ...]:
    sizes = {1: (1, 2, 5, 17, 33), 2: (1, 2, 3, 5, 8, 16), 3: (1, 2, 3, 4)}[dimension]
    return tuple(rng.choice(sizes) for _ in range(dimension))


def _long_enough(shape: tuple[int, ...], edges: dict[str, object]) -> tuple[int, ...]:
    """An outflow looks one site further in."""
    rules = [edges.get(axis) for axis in "xyz"[: len(shape)]][::-1]
    return tuple(
        max(n, 2) if "outflow" in (rule if isinstance(rule, tuple) else (rule,)) else n
        for n, rule in zip(shape, rules, strict=True)
    )


def _edges(rng: Random, dimension: int, rules: tuple[str, ...]) -> dict[str, object]:
    edges: dict[str, object] = {}
    for axis in "xyz"[:dimension]:
        rule = rng.choice(rules)
        one = rng.random() < 0.3 and rule != "periodic"
        others = [r for r in rules if r != "periodic"]
        edges[axis] = (rule, rng.choice(others)) if one else rule
    return edges


def _part(rng: Random, name: str, size: int) -> object:
    """What comes along one direction."""
    return lambda b: f"{name}[{rng.choice([q for q in b.places if q.startswith('q')] or [rng.randrange(size)])}]"


def _gathered(rng: Random, w: Writer, b: Block, lattice: str, fields: list[str], real: t.Scalar) -> list[str]:
    """A sum over the directions."""
    s, q = w.new("s"), w.new("q")
    inner = b.inner(loop=True)
    inner.places[q] = ""
    term = w.expression(inner, real, 2)
    b.variables[s] = real
    condition = rng.choice(("", "", f"if {q}.x == 1:", f"if {q}.index % 2 == 1:"))
    body = [f"{s} {rng.choice('+-')}= {w.tamed(real, term)}"]
    return [
        f"{s} = {w.literal(real)}",
        f"for {q} in lw.{lattice}:",
        *indented([condition, *indented(body)] if condition else body),
    ]


def _collision(
    rng: Random, w: Writer, lattice: str, size: int, real: t.Scalar, uniforms: dict[str, t.ValueType]
) -> list[str]:
    """What a site does with its populations."""
    b = Block({}, dict(uniforms), atoms=[Atom(real, _part(rng, "f", size))], leaves=False)
    w.budget = rng.choice((15, 30))
    lines = _gathered(rng, w, b, lattice, ["f"], real)
    lines += w.block(b, rng.randint(0, 3), ())
    inner = b.inner(loop=True)
    q = w.new("q")
    inner.places[q] = ""
    w.budget = max(w.budget, 10)
    form = rng.choice((f"f[{q}]", f"f[{q}]", f"f[{q}.opposite]"))
    if form.endswith("opposite]"):
        inner.atoms = []
    return [*lines, f"for {q} in lw.{lattice}:", f"    {form} = {w.tamed(real, w.expression(inner, real, 2))}"]


STENCILS, FLOWS, COUPLINGS = (
    Pattern("stencils", write_stencil),
    Pattern("flows", write_flow),
    Pattern("couplings", write_coupled),
)
