"""What is added to a copy of lanewise, as ARCHITECTURE.md says it is done: one file, and lines at one place each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Addition:
    """file: the new one, in src/lanewise, or "" where there is none; text: what it holds.

    lines: (file, the line before which something is added, what is added). use: Python that proves it, in one process for all.
    """

    name: str
    file: str
    text: str
    lines: tuple[tuple[str, str, str], ...]
    use: str


LAYOUT = Addition(
    "a layout", "layouts/backwards.py",
    '''"""Backwards: an array for each leaf, the last leaf first."""

from dataclasses import dataclass

from lanewise.support.attributes import frozen
from lanewise.layouts.base import Arrangement, Buffer, Layout, Slot


@frozen
@dataclass(frozen=True, slots=True)
class Backwards(Layout):
    """The last leaf first."""

    def arrange(self, leaves):
        last = len(leaves) - 1
        slots = tuple(Slot(leaf.name, leaf.type, last - i, 0, 0) for i, leaf in enumerate(leaves))
        return Arrangement(slots, tuple(Buffer(leaf.name, 1, leaf.type.size) for leaf in reversed(leaves)))

    def __str__(self):
        return "Backwards"
''',
    (
        ("layouts/named.py", "from lanewise.layouts.base import Layout\n", "from lanewise.layouts.backwards import Backwards\n"),
        ("layouts/named.py", '    "aos": plain(AoS),\n', '    "backwards": plain(Backwards),\n'),
    ),
    """
from lanewise.layouts import layout_by_name, prove
layout = layout_by_name("backwards")
prove(Body.array(x=[1.0, 2.0], v=[[1.0, 2.0, 3.0]] * 2, layout=layout).arrangement, 2)
for device in ("python", "cpu"):
    bodies = Body.array(x=[1.0, 2.0], v=[[1.0, 2.0, 3.0]] * 2, layout=layout, device=device)
    push(bodies, 2.0)
    assert bodies.v.tolist() == [[3.0, 4.0, 5.0]] * 2 and bodies.x.tolist() == [2.0, 4.0]
assert "Backwards" in str(push.compile(bodies, 2.0).explain())
""",
)  # fmt: skip

PASS = Addition(
    "a pass", "passes/double_negation.py",
    '''"""Take out what is negated twice: `-(-x)` is x, also for zeros and NaN."""

from lanewise.ir import nodes as ir
from dataclasses import replace

from lanewise.ir.functions import functions, map_functions
from lanewise.ir.traverse import expressions, rewrite, rewrite_block, statements, subexpressions
from lanewise.passes.base import refuse


def _is_double(e):
    return isinstance(e, ir.Unary) and e.operator == "-" and isinstance(e.operand, ir.Unary) and e.operand.operator == "-"


def legal(kernel):
    """Why the pass does not apply, or None."""
    bodies = [f.body for f in functions(kernel.body)]
    found = any(_is_double(x) for b in bodies for s in statements(b) for e in expressions(s) for x in subexpressions(e))
    return None if found else "nothing in it is negated twice"


def apply(kernel):
    """Rewrite every function."""
    if reason := legal(kernel):
        raise refuse("double negation", kernel, reason)

    def once(e):
        return e.operand.operand if _is_double(e) else e

    return map_functions(kernel, lambda f: replace(f, body=rewrite_block(f.body, lambda e: rewrite(e, once))))
''',
    (
        (
            "planning/plan.py", "    vector_bits: int | Open = decision(\n",
            """    negations: bool | Open = decision(
        "double negation", choice(off="as written", on="what is negated twice is not"), neutral=False, place=22, rank=17,
        cuda=SWITCH, cpu=SWITCH, elementwise=SWITCH, elementwise_cpu=SWITCH, apart=True,
    )
""",
        ),
        ("compiler/stages.py", "from lanewise.passes.base import refuse\n", "from lanewise.passes import double_negation\n"),
        (
            "compiler/stages.py", '    if plan.rsqrt != "written":\n',
            '    if plan.negations:\n        kernel = checked("double negation", double_negation.apply(kernel))\n',
        ),
    ),
    """
with pytest.raises(lw.PlanError, match="double negation cannot be applied to push: nothing in it is negated twice"):
    push.compile(bodies, 1.0, plan=lw.Plan(negations=True))
assert twice.compile(bodies).plan.negations is False
assert "return --body_x" in twice.compile(bodies).source
shorter = twice.compile(bodies, plan=lw.Plan(negations=True))
assert "return body_x" in shorter.source
assert twice(bodies, plan=lw.Plan(negations=True)).tolist() == bodies.x.tolist()
rows = {r.field: r for r in twice.compile(bodies).explain().rows}
assert rows["negations"].name == "double negation" and not rows["negations"].applied
with pytest.raises(lw.PlanError, match="wanted True or False"):
    lw.Plan(negations=3)
""",
)  # fmt: skip

LATTICE = Addition(
    "a lattice", "language/lattices/d3q15.py",
    '''"""D3Q15: six axes and eight corners."""

from fractions import Fraction

from lanewise.language.lattices.base import Lattice

AXES = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
CORNERS = tuple((s * x, s * y, s) for x in (1, -1) for y in (1, -1) for s in (1, -1))
D3Q15 = Lattice("D3Q15", ((0, 0, 0), *AXES, *CORNERS), (Fraction(2, 9), *[Fraction(1, 9)] * 6, *[Fraction(1, 72)] * 8))
''',
    (("language/lattices/__init__.py", "from lanewise.language.lattices.d2q9 import D2Q9\n", "from lanewise.language.lattices.d3q15 import D3Q15\n"),),
    """
from lanewise.language.lattices import D3Q15
spread = lw.sitewise(D3Q15)(diffusion)
heat = spread.sites((6, 6, 6))
start = np.zeros((15, 6, 6, 6)); start[0, 3, 3, 3] = 1.0
spread.set_populations(heat, start)
for _ in range(3):
    spread(heat, omega=1.0)
total = np.asarray(spread.populations(heat, omega=1.0)).sum(axis=0)
assert abs(total.sum() - 1) < 1e-6 and 0 < total[3, 3, 5] == total[5, 3, 3] < total.max()
""",
)  # fmt: skip

OPERATOR = Addition(
    "a collision operator", "sims/lbm/operators/again.py",
    '''"""BGK under another name."""

from functools import cache

from lanewise.sims.lbm.operators.bgk import make_bgk


@cache
def make_again(lattice, precision, forced=False):
    """See `make_bgk`."""
    return make_bgk(lattice, precision, forced)
''',
    (
        ("sims/lbm/operators/registry.py", "from lanewise.sims.lbm.operators.bgk import make_bgk\n", "from lanewise.sims.lbm.operators.again import make_again\n"),
        ("sims/lbm/operators/registry.py", '    Operator("kbc"', '    Operator("again", "one relaxation time", make_again),\n'),
    ),
    """
from lanewise.sims.lbm import Simulation
found = []
for name in ("bgk", "again"):
    flow = Simulation(shape=(8, 8), viscosity=0.1, collision=name, velocity=wave)
    flow.run(4)
    found.append(flow.velocity)
assert np.array_equal(*found) and abs(found[0]).max() > 0
""",
)  # fmt: skip

SEARCH = Addition(
    "a search structure", "patterns/search/every.py",
    '''"""Every source, as AllPairs does, under another name."""

from dataclasses import dataclass

from lanewise.support.attributes import frozen
from lanewise.patterns.search.all_pairs import AllPairs
from lanewise.patterns.search.base import Search


@frozen
@dataclass(frozen=True, slots=True, kw_only=True)
class Every(Search):
    """All sources in order."""

    def describe(self):
        return f"every source: {self.in_words()}"

    def make(self, sources):
        return AllPairs(radius=self.radius, k=self.k, world=self.world, position=self.position).make(sources)
''',
    (("patterns/search/__init__.py", "from lanewise.patterns.search.static_grid import StaticGrid\n", "from lanewise.patterns.search.every import Every\n"),),
    """
from lanewise.patterns.search import Every
places = np.random.default_rng(0).random((50, 3)).astype(np.float32)
points = Body.array(x=1.0, v=places)
near = [crowd.using(s(radius=0.3, position="v"))(points, points) for s in (Every, lw.StaticGrid)]
assert near[0].tolist() == near[1].tolist() and 1 < near[0].mean() < 50
""",
)  # fmt: skip

REDUCTION = Addition(
    "a reduction of pairs", "ir/reductions/products.py",
    '''"""The product of all values."""

from dataclasses import dataclass

from lanewise.ir import nodes as ir
from lanewise.ir.reductions.base import Reduction, StatePart


@dataclass(frozen=True, slots=True)
class Product(Reduction):
    """1 of no source."""

    def parts(self, kind):
        return (StatePart("", kind, ir.Literal(1.0 if kind.is_float else 1, kind)),)

    def take(self, state, value, place):
        return self.merge(state, (value,))

    def merge(self, state, other):
        (product,), (more,) = state, other
        return (ir.Assign(product.name, ir.Binary("*", product, more, product.type)),)


PRODUCT = Product("product", reorders=True, widens=True)
''',
    (
        (
            "ir/reductions/__init__.py", "from lanewise.ir.reductions.smallest import MOST_SMALLEST, arg_k_min, k_min\n",
            "from lanewise.ir.reductions.products import PRODUCT\n",
        ),
        (
            "frontend/reductions.py", "    KMin = _listed(\n",
            '    Product = _plain("Product", reductions.PRODUCT, "The product of the values of all pairs of a target.")\n',
        ),
    ),
    """
from lanewise.frontend.reductions import Product

@lw.pairwise
def product(target: Body, source: Body) -> Product[lw.f32]:
    return source.x

for device in ("python", "cpu"):
    for n in (1, 5):
        points = Body.array(x=np.arange(1, n + 1), v=(0, 0, 0), device=device)
        assert product(points, points).tolist() == [(1.0, 120.0)[n > 1]] * n
assert product.compile(points, points).explain().pattern == "pairwise"
with pytest.raises(lw.CompileError, match="product has no gradient: a result is no sum over pairs"):
    product.gradient("source.x")
assert "the product of a group is not known" in lw.far_field(product, "v").reason
""",
)  # fmt: skip

FORMAT = Addition(
    "a file format", "io/words.py",
    '''"""A format of one line of text: the number of bodies, all of them at rest at the origin."""

import numpy as np

from lanewise.io.formats import Format
from lanewise.io.particles import Particles


def _read(path):
    count = int(open(path, "rb").read().split()[1])
    return Particles.of(np.zeros((count, 3)), np.zeros((count, 3)), 1.0)


def _write(path, particles, overwrite):
    with open(path, "wb" if overwrite else "xb") as file:
        file.write(b"WORDS %d" % len(particles.mass))


FORMAT = Format("words", (".words",), lambda head: head.startswith(b"WORDS "), _read, _write)
''',
    (),
    """
from lanewise.io.formats import read_particles, write_particles
write_particles("three.words", read_particles_of(3))
assert len(read_particles("three.words").mass) == 3
""",
)  # fmt: skip

INITIAL = Addition(
    "an initial condition", "sims/gravity/initial/line.py",
    '''"""Bodies in a line, at rest."""

import numpy as np

from lanewise.io.particles import Particles
from lanewise.sims.gravity.initial.registry import InitialCondition


def line(bodies, seed=0):
    """At 0, 1, 2, ..."""
    place = np.zeros((bodies, 3))
    place[:, 0] = np.arange(bodies)
    return Particles.of(place, np.zeros((bodies, 3)), 1.0)


CONDITION = InitialCondition("line", "bodies in a line, at rest", line)
''',
    (),
    """
assert run("gravity", "run", "--ic", "line", "--bodies", "4", "--steps", "2", "--dt", "0.01", "--device", "cpu", "--out", "line.h5") == 0
""",
)  # fmt: skip

CASE = Addition(
    "a case of flow", "sims/lbm/cases/still.py",
    '''"""Nothing moves."""

import numpy as np

from lanewise.sims.lbm.cases.registry import Case, Setup


def make(request):
    n = request.size
    return Setup(
        lattice="D2Q9", shape=(n, n), viscosity=request.speed * n / request.re, speed=request.speed, length=n, steps=5,
        results=lambda state, series: {"fastest": float(np.abs(state.velocity).max())},
    )


CASE = Case("still", "a fluid at rest", make, re=10.0, size=8, size_of="sites along a side")
''',
    (),
    """
assert run("lbm", "run", "still", "--device", "cpu", "--json") == 0
""",
)  # fmt: skip

PRODUCT = Addition(
    "a product", "sims/pendulum/command.py",
    '''"""Pendulums of many lengths."""

import json
from dataclasses import dataclass
from pathlib import Path

import lanewise as lw
from lanewise.io.atomic import atomic_path
from lanewise.sims.common.checks import check_files, check_steps, last_step
from lanewise.sims.common.frame import Product, carry_out
from lanewise.sims.common.commands import product_app, run_command
from lanewise.sims.common.options import CHECKPOINT_EVERY, METHOD, OUTPUT, OVERWRITE, RESUME, Option, setting
from lanewise.sims.common.run import Checkpoints, Every, Run

app = product_app("pendulum")


@lw.record
class Pendulum:
    angle: lw.f64
    speed: lw.f64


@lw.elementwise
def swing(p: Pendulum, dt: lw.f64):
    p.speed -= dt * lw.sin(p.angle)
    p.angle += dt * p.speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    steps: int = setting(10, Option(METHOD, "N", "steps to take (default {default})"))
    dt: float = setting(0.1, Option(METHOD, "X", "time step (default {default})", minimum=0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    out: Path | None = setting(None, Option(OUTPUT, "FILE.json", "the angle and the speed"))
    resume: Path | None = setting(None, RESUME)
    checkpoint_every: int = setting(0, CHECKPOINT_EVERY)
    overwrite: bool = setting(False, OVERWRITE)


@dataclass
class SimulatedPendulum:
    pendulum: object
    dt: float
    step: int = 0
    profile: object = None
    largest: float = 0.0

    def prepare(self, run):
        pass

    def advance(self, steps):
        for _ in range(steps):
            swing(self.pendulum, dt=self.dt)
        self.step += steps

    def check(self):
        pass

    def outputs(self, run, files):
        yield Every(2, self.look)

    def look(self):
        self.largest = max(self.largest, float(self.pendulum.angle[0]))

    def save(self, path, run):
        with atomic_path(path, overwrite=True) as place:
            Path(place).write_text(json.dumps(self.summary(run)))

    def write_results(self, run):
        pass

    def finish(self, run):
        pass

    def summary(self, run):
        angle, speed = float(self.pendulum.angle[0]), float(self.pendulum.speed[0])
        kept = {"step": self.step, "steps": run.steps, "dt": self.dt, "angle": angle, "speed": speed}
        return {**kept, "largest": self.largest}


def begin(given, output):
    settings = given.make(Settings)
    check_steps(settings.steps)
    check_files({"out": output.out}, overwrite=output.overwrite, resumed=output.resume)
    if output.resume is None:
        here = SimulatedPendulum(Pendulum.array(angle=[0.1], speed=0.0), settings.dt)
        return Run(state=here, steps=settings.steps, checkpoints=Checkpoints(output.out))
    given.refuse_with_resume(Settings, but=("steps",))
    kept = json.loads(output.resume.read_text())
    last = last_step(output.resume, kept["step"], kept["steps"], given["steps"])
    here = Pendulum.array(angle=[kept["angle"]], speed=kept["speed"])
    here = SimulatedPendulum(here, kept["dt"], kept["step"], largest=kept["largest"])
    checkpoints = Checkpoints(output.out, resumed=output.resume)
    return Run(state=here, steps=last, first_step=kept["step"], checkpoints=checkpoints)


@run_command(app, Settings, Output)
def run(given):
    """Let it swing."""
    output = given.make(Output)
    product = Product("pendulum", lambda run: "pendulum", lambda run: "", lambda run, found: print(found["angle"]))
    carry_out(product, given, lambda profile: begin(given, output), output.out)
''',
    (("sims/__init__.py", '    "gravity": ', '    "pendulum": "A pendulum.",\n'),),
    """
import json
from lanewise.support.errors import InputError
assert run("pendulum", "run", "--steps", "6", "--out", "whole.json", "--json") == 0
assert run("pendulum", "run", "--steps", "4", "--out", "first.json") == 0
assert run("pendulum", "run", "--resume", "first.json", "--steps", "2", "--out", "rest.json", "--quiet") == 0
whole, rest = (json.loads(open(name).read()) for name in ("whole.json", "rest.json"))
assert whole == rest and whole["step"] == 6 and whole["angle"] < whole["largest"] == 0.1
with pytest.raises(InputError, match="first.json: the file exists already"):
    run("pendulum", "run", "--out", "first.json")
with pytest.raises(InputError, match="first.json is complete at step 4; say with --steps how many more"):
    run("pendulum", "run", "--resume", "first.json", "--out", "more.json")
with pytest.raises(InputError, match="--dt cannot be given with --resume: the checkpoint keeps its own"):
    run("pendulum", "run", "--resume", "first.json", "--dt", "0.2", "--out", "more.json")
assert lw.sims.pendulum.command.Settings().steps == 10
""",
)  # fmt: skip

STATEMENT = Addition(
    "a statement of the IR", "", "",
    (
        ("ir/nodes.py", "from dataclasses import dataclass, field\n", "from typing import Annotated\n"),
        ("ir/nodes.py", "from lanewise.ir.roles import ", "from lanewise.ir.roles import FieldRole\n"),
        (
            "ir/nodes.py", "@dataclass(frozen=True, slots=True)\nclass If(StatementNode):\n",
            """@dataclass(frozen=True, slots=True)
class Swap(StatementNode):
    \"\"\"Each of two variables takes what the other one is.\"\"\"

    form: ClassVar[str] = "swap {values}"

    values: tuple[Annotated[Local, FieldRole.CHANGED], ...]


""",
        ),
        ("ir/nodes.py", "    | DeclareArray\n    | SetElement\n", "    | Swap\n"),
        (
            "ir/verify.py", "            case ir.DeclareArray():\n",
            """            case ir.Swap():
                if len(s.values) != 2 or s.values[0].type != s.values[1].type:
                    raise self.fail(s, "no two variables of one type")
""",
        ),
        (
            "ir/interpret.py", "        case ir.DeclareArray():\n",
            """        case ir.Swap():
            (a, b) = (v.name for v in s.values)
            return lambda env: env.update({a: env[b], b: env[a]})
""",
        ),
        (
            "emit/cuda.py", "            case ir.DeclareArray():\n",
            """            case ir.Swap():
                a, b = (self.names(v.name) for v in s.values)
                self.put(f"{pad}{{ const auto kept = {a}; {a} = {b}; {b} = kept; }}")
""",
        ),
        (
            "emit/llvm_statements.py", "            case ir.DeclareArray():\n",
            """            case ir.Swap():
                for v, other in zip(s.values, [value(v) for v in reversed(s.values)], strict=True):
                    self.assign(v.name, other, v.type)
""",
        ),
    ),
    """
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_block
swap = ir.Swap((ir.Local("a", F32), ir.Local("b", F32)))
assert print_block((swap,)) == "  swap a, b"
change(below, lambda body: (*body[:-1], swap, body[-1]))
for device in ("python", "cpu"):
    bodies = Body.array(x=[1.0, 2.0], v=(5.0, 0.0, 0.0), device=device)
    assert below(bodies).tolist() == [4.0, 3.0]
assert "{ const auto kept = a; a = b; b = kept; }" in cuda(below)
change(below, lambda body: (*body[:-2], ir.Swap((swap.values[0],)), body[-1]))
with pytest.raises(lanewise.support.errors.VerificationError, match="no two variables of one type in\\n  swap a"):
    cuda(below)
change(below, lambda body: (*body[:-2], ir.Swap((ir.Literal(1.0, F32),)), body[-1]))
with pytest.raises(lanewise.support.errors.VerificationError, match=r"Swap.values cannot be \\(Literal"):
    cuda(below)
""",
)  # fmt: skip

EXPRESSION = Addition(
    "an expression of the IR", "", "",
    (
        (
            "ir/expressions.py", "@dataclass(frozen=True, slots=True)\nclass Compare(ExpressionNode):\n",
            """@dataclass(frozen=True, slots=True)
class Mean(ExpressionNode):
    \"\"\"Of two floats.\"\"\"

    form: ClassVar[str] = "mean({left}, {right})"

    left: Expression
    right: Expression
    type: Scalar
    location: Location = field(default=NOWHERE, compare=False, repr=False)


""",
        ),
        ("ir/expressions.py", "    \"Select\",\n", "    \"Mean\",\n"),
        ("ir/expressions.py", "Literal | Local | Unary", "Mean | "),
        (
            "ir/verify_expression.py", "        case ir.Compare():\n",
            """        case ir.Mean():
            fits = e.left.type == e.right.type == e.type and e.type.is_float
            return "" if fits else f"{text} mixes types"
""",
        ),
        (
            "ir/interpret.py", "            case ir.Select():\n                chosen",
            """            case ir.Mean():
                half = self.own(e.type.dtype.type(0.5))
                return f"(({self.value(e.left, depth)} + {self.value(e.right, depth)}) * {half})"
""",
        ),
        (
            "emit/cuda_expressions.py", "        case ir.Select():\n            return _wrap",
            """        case ir.Mean():
            half = literal(0.5, x.type)
            return _wrap(f"{half} * ({text(x.left)} + {text(x.right)})", _BINDING["*"], level)
""",
        ),
        (
            "emit/llvm_expressions.py", "            case ir.Select():\n                return self.select(x)",
            """            case ir.Mean():
                t, left, right = TYPES[x.type], self.value(x.left), self.value(x.right)
                total = give(f"fadd {t} {left}, {right}")
                return give(f"fmul {t} {total}, {literal(0.5, x.type)}")
""",
        ),
        (
            "emit/llvm_lane_values.py", "            case ir.Select():\n                if not lanes",
            """            case ir.Mean():
                total = vectors.binary("+", e.type, self.register(e.left), self.register(e.right))
                half = self.register(ir.Literal(0.5, e.type))
                return vectors.binary("*", e.type, total, half)
""",
        ),
    ),
    """
from lanewise.ir import nodes as ir
from lanewise.ir.printer import print_expression
from lanewise.ir.traverse import reads, rename, rewrite_block
middle = ir.Mean(ir.Local("a", F32), ir.Local("b", F32), F32)
assert print_expression(middle) == "mean(a, b)" and list(reads(middle)) == ["a", "b"]
assert rename((ir.Return((middle,)),), {"b": "c"})[0].values[0].right.name == "c"

def as_mean(e):
    return ir.Mean(e.left, e.right, e.type) if isinstance(e, ir.Binary) and e.operator == "+" else e

change(between, lambda body: rewrite_block(body, as_mean))
for device in ("python", "cpu"):
    bodies = Body.array(x=[1.0, 2.0], v=(5.0, 0.0, 0.0), device=device)
    assert between(bodies).tolist() == [3.0, 3.5]
assert "0.5f * (body_x + body_v_x)" in cuda(between)
change(between, lambda body: rewrite_block(body, lambda e: ir.Mean(e, e, F64) if isinstance(e, ir.Mean) else e))
with pytest.raises(lanewise.support.errors.VerificationError, match="mean.* mixes types"):
    cuda(between)
""",
)  # fmt: skip

ADDITIONS = (LAYOUT, PASS, LATTICE, OPERATOR, REDUCTION, SEARCH, PRODUCT, FORMAT, INITIAL, CASE, STATEMENT, EXPRESSION)

PREAMBLE = """
import dataclasses
import sys
import numpy as np
import pytest
import lanewise as lw
import lanewise.support.errors
from lanewise.language.types import F32, F64, I32

@lw.record
class Body:
    x: lw.f32
    v: lw.vec3

@lw.elementwise
def push(body: Body, by: lw.f32):
    body.v += by
    body.x *= by

@lw.elementwise
def twice(body: Body) -> lw.f32:
    return -(-body.x)

@lw.elementwise
def below(body: Body) -> lw.f32:
    a = body.x
    b = body.v.x
    return a - b

@lw.elementwise
def between(body: Body) -> lw.f32:
    return body.x + body.v.x

def change(kernel, body):
    # the function as a stage of the compiler might leave it
    lowered = kernel.lowered
    function = dataclasses.replace(lowered.function, body=body(lowered.function.body))
    kernel._calls.subject._lowered = dataclasses.replace(lowered, function=function)

def cuda(kernel):
    from lanewise.compiler.pipeline import build_program
    from lanewise.emit.cuda import emit_cuda
    from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
    from lanewise.planning.plan import NEUTRAL
    arguments = ElementwiseArguments({"body": (kernel.signature.parameters["body"], lw.SoA())}, {}, {})
    reference = build_elementwise(kernel.lowered, arguments, I32)
    program = build_program(reference, lw.Plan(block=32).filled(NEUTRAL), "cuda", lambda stage, kernel: None)
    return emit_cuda(program.kernels[0], "")

@lw.pairwise(search=lw.AllPairs(radius=1.0, position="v"))
def crowd(target: Body, source: Body) -> lw.i32:
    return 1

def diffusion(f: lw.populations, omega: lw.f32):
    total = lw.f32(0)
    for q in lw.language.lattices.D3Q15:
        total += f[q]
    for q in lw.language.lattices.D3Q15:
        f[q] += omega * (q.weight * total - f[q])

def read_particles_of(count):
    from lanewise.io.particles import Particles
    return Particles.of(np.zeros((count, 3)), np.zeros((count, 3)), 1.0)

def run(*arguments):
    from lanewise.cli.main import app
    try:
        app(list(arguments), standalone_mode=False)
    except SystemExit as end:
        return end.code or 0
    return 0

wave = 0.01 * np.stack(np.meshgrid(np.sin(np.arange(8) * np.pi / 4), np.cos(np.arange(8) * np.pi / 4)), -1)
"""
