"""What default plans decide, and that they give way to the user's wishes."""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from typing import Any

import pytest

import lanewise as lw
from lanewise.compiler.default_plans import CPU_TILE, complete_plan, decide
from lanewise.compiler.optimisations import LAYOUT, OPTIMISATIONS
from lanewise.compiler.pipeline import build_program
from lanewise.compiler.work import describe_work
from lanewise.ir.pattern import Work
from lanewise.language.target import Machine
from lanewise.language.types import I32
from lanewise.launch.support import compile_kernel
from lanewise.patterns.pairwise.build import PairwiseArguments, build_pairwise
from lanewise.planning.plan import DECLARED, NEUTRAL, Plan, complete
from lanewise.support.errors import PlanError
from tests.corpus import CASES, case
from tests.harness import reference_kernel

GPU, CPU = Machine("cuda", 132), Machine("cpu", 2)


@lw.record
class Place:
    at: lw.vec2


def work(name: str, targets: int, *, same: bool = True) -> Work:
    return describe_work(reference_kernel(case(name), lw.SoAoAS(), "cuda", same=same), targets)


def plan(name: str, targets: int, wanted: Plan | None = None, *, same: bool = True) -> Plan:
    return complete_plan(wanted, GPU, work(name, targets, same=same))


@pytest.mark.parametrize(
    ("name", "targets", "mode", "merged"),
    [
        ("gravity", 2_048, "off", 1),
        ("gravity", 4_096, "scratch", 4),
        ("gravity", 16_384, "scratch", 8),
        ("gravity", 65_536, "ordered", 8),
        ("gravity", 524_288, "ordered", 12),
        ("gravity_f64", 16_384, "scratch", 4),
        ("gravity_f64", 131_072, "ordered", 6),
        ("gravity_mixed", 4_096, "scratch", 2),
        ("lennard_jones", 4_096, "scratch", 2),
        ("yukawa", 65_536, "ordered", 6),
    ],
)
def test_pairs_are_computed_once_where_that_pays(name, targets, mode, merged):
    found = plan(name, targets)
    assert (found.reciprocity, found.targets) == (mode, merged)


@pytest.mark.parametrize(
    "wanted",
    [Plan(tile=64, block=64), Plan(slices=2), Plan(parts=4), Plan(prefetch="async"), Plan(hoist=True),
     Plan(reciprocity="off"), Plan(self_term="loops")],
    ids=str,
)  # fmt: skip
def test_wishes_that_do_not_go_with_it_come_first(wanted):
    found = plan("gravity", 65_536, wanted)
    assert found.reciprocity == "off"
    assert all(getattr(found, n) == v for n, v in wanted.as_dict().items() if v is not None)


def test_one_cap_on_registers_is_enough():
    assert plan("gravity", 16_384).registers == 128
    assert plan("gravity", 16_384, Plan(min_blocks=2)).registers == 0


def test_two_arrays_are_computed_from_one_side():
    assert plan("gravity", 65_536, same=False).reciprocity == "off"


def test_partial_sums_are_bounded():
    for n in (2_000, 10_000, 20_000, 40_000, 80_000, 1_000_000):
        found = plan("gravity", n)
        if found.reciprocity == "scratch":
            assert n * -(-n // (32 * (found.targets or 1))) * 12 <= 64 << 20


@pytest.mark.grid(every=40)
@pytest.mark.parametrize("c", CASES, ids=lambda c: c.name)
@pytest.mark.parametrize("targets", [1, 5_000, 200_000])
def test_every_default_plan_builds(c, targets):
    for machine in (GPU, CPU):
        reference = reference_kernel(c, lw.SoA(), machine.kind)
        found = complete_plan(None, machine, describe_work(reference, targets))
        assert None not in found.as_dict().values()
        build_program(reference, found, machine.kind)


def test_a_cpu_computes_one_side():
    reference = reference_kernel(case("gravity"), lw.SoA(), "cpu")
    assert complete_plan(None, CPU, describe_work(reference, 10_000)) == Plan(targets=1).filled(NEUTRAL)


def test_who_wants_no_tiles_gets_nothing_that_divides_them():
    for n in (300, 20_000):
        found = plan("count_ranks", n, Plan(tile=0))
        assert (found.slices, found.parts) == (1, 1)


ELEMENTS = [
    (Plan(tile=64), "tiling cannot be applied to speed: it has no loop over sources"),
    (Plan(unroll=4), "unrolling cannot be applied to speed: it has no loop over sources"),
    (Plan(slices=2), "slicing cannot be applied to speed: its targets are not mapped to the lanes of a block"),
    (Plan(parts=2), "splitting of sources cannot be applied to speed: its sources are not cut into tiles"),
    (Plan(reciprocity="ordered"), "reciprocity cannot be applied to speed: its elements are no pairs"),
    (Plan(targets=3), "thread merging cannot be applied to speed: a thread computes 1, 2, 4 or 8 elements; 3 were requested"),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "text"), ELEMENTS, ids=str)
def test_nothing_is_ignored(wanted, text):
    reference = reference_kernel(case("speed"), lw.SoA(), "cuda")
    complete = complete_plan(wanted, GPU, describe_work(reference, 1000))
    with pytest.raises(PlanError) as error:
        build_program(reference, complete, "cuda")
    assert str(error.value) == text


@lw.record
class Wide:
    a: lw.vec4
    b: lw.vec4
    c: lw.vec4
    d: lw.vec4
    e: lw.vec4


@lw.pairwise
def everything(target: Wide, source: Wide) -> lw.vec4:
    s = source.a * source.b + source.c * source.d * source.e
    return s * lw.exp(target.a + s)


@lw.pairwise
def many_values(target: Wide, source: Wide) -> tuple[lw.vec4, lw.vec4, lw.vec4]:
    a, b, c = source.a - target.a, source.b - target.b, source.c - target.c
    r = lw.rsqrt(lw.dot(a, a) + lw.dot(b, b) + lw.dot(c, c) + 1.0)
    return a * r, b * r, c * r


def reference(kernel, *, same: bool):
    arguments = PairwiseArguments(
        ("target", Wide.__record__, lw.SoAoAS()), ("source", Wide.__record__, lw.SoAoAS()), {}, same
    )
    return build_pairwise(kernel.lowered, arguments, I32)


@pytest.mark.parametrize("n", [500, 10_000, 300_000])
def test_large_records_fit_shared_memory(n):
    kernel = reference(everything, same=False)
    build_program(kernel, complete_plan(None, GPU, describe_work(kernel, n)), "cuda")


def test_a_cap_of_the_default_plan_that_spills_is_lifted():
    kernel = reference(many_values, same=True)
    found = Plan(registers=40).filled(complete_plan(None, GPU, describe_work(kernel, 8_000)))
    relaxed = compile_kernel(kernel, found, "cuda", arch="sm_90")
    assert relaxed.program.plan.registers == 0
    assert relaxed.cubins[0].resources.spill_stores == 0
    kept = compile_kernel(kernel, found, "cuda", requested=Plan(registers=40), arch="sm_90")
    assert kept.program.plan.registers == 40


def test_every_field_is_declared_once() -> None:
    declared = [o for o in OPTIMISATIONS if o.field != LAYOUT]
    assert sorted(o.field for o in declared) == sorted(f.name for f in fields(Plan))
    assert len({o.place for o in OPTIMISATIONS}) == len(OPTIMISATIONS)
    assert NEUTRAL.as_dict() == {o.field: o.neutral for o in declared}
    ranks = [o.rank for o in declared if o.rank]
    assert sorted(ranks) == list(range(1, len(ranks) + 1))
    for o in declared:
        assert bool(o.rank) is not (o.on_request or o.field == "reciprocity"), o.field
        for kind, values in (("cuda", (*o.cuda, *o.elementwise, *o.sites)), ("cpu", (*o.cpu, *o.elementwise_cpu))):
            for value in (o.neutral, *values):
                assert o.describe(value, kind)
                Plan(**{o.field: value})


def test_a_complete_plan_leaves_nothing_open() -> None:
    decided = Plan(targets=4).filled(NEUTRAL)
    assert type(decided) is type(complete_plan(None, CPU, work("gravity", 100))) is Plan
    assert None not in decided.as_dict().values()
    assert (decided.targets, decided.tile) == (4, NEUTRAL.tile)
    with pytest.raises(PlanError, match=r"^a complete plan leaves nothing open, and tile is not decided$"):
        complete(Plan(targets=1))
    assert complete(decided) is decided
    wish = replace(decided, tile=None)
    assert (wish.tile, wish.targets) == (None, 4)
    assert wish == lw.Plan(**(decided.as_dict() | {"tile": None}))
    assert type(wish) is type(wish.filled(Plan())) is Plan


def test_decisions_have_a_plan_and_reasons() -> None:
    asked = Plan(accumulate="f64", reciprocity="off")
    made = decide(asked, CPU, work("gravity", 100))
    assert made.plan == complete_plan(asked, CPU, work("gravity", 100))
    assert made.plan.tile == CPU_TILE
    assert made.why("accumulate") == made.why("reciprocity") == "requested"
    assert made.why("tile") == "tiles are summed in the type of the result, and added"
    assert made.why("targets") == "by default"
    changed = made.but("measured by tune()", targets=2)
    assert (changed.plan.targets, changed.why("targets")) == (2, "measured by tune()")
    assert (made.plan.targets, changed.why("tile")) != (2, "by default")
    assert changed.plan == Plan(targets=2).filled(made.plan)


def test_a_complete_plan_is_a_plan() -> None:
    """Whoever keeps, compares, prints, pickles or hands on the plan of a kernel need not know that it is complete."""
    decided = Plan(targets=4).filled(NEUTRAL)
    wish = lw.Plan(**decided.as_dict())
    assert isinstance(decided, lw.Plan)
    assert decided == wish
    assert wish == decided
    assert hash(decided) == hash(wish)
    assert decided != replace(decided, targets=2)
    assert decided != lw.Plan(targets=4)
    assert decided != decided.as_dict()
    assert len({decided, wish}) == 1
    assert (repr(decided), str(decided)) == (repr(wish), str(wish))
    assert eval(repr(decided), {"Plan": lw.Plan}) == decided
    again = pickle.loads(pickle.dumps(decided))
    assert again == decided
    assert type(again) is Plan
    assert decided.as_dict() == wish.as_dict() == {f.name: getattr(decided, f.name) for f in fields(Plan)}


def test_the_plan_of_a_kernel_compiles_it_again() -> None:
    @lw.pairwise
    def near(target: Place, source: Place) -> lw.f32:
        return lw.rsqrt(lw.dot(target.at - source.at, target.at - source.at) + 1.0)

    places = Place.zeros(8)
    run = near.compile(places, places)
    for given in (run.plan, lw.Plan(**run.plan.as_dict())):
        assert near.compile(places, places, plan=given).plan == run.plan
    assert near.compile(places, places, plan=replace(run.plan, targets=2)).plan.targets == 2


def test_what_reciprocity_needs_is_declared_once() -> None:
    """Its start is legal for a kernel with pairs of both ways, and each needed field by another value is refused by
    that name.
    """
    declared, reference = DECLARED["reciprocity"], reference_kernel(case("gravity"), lw.SoAoAS(), "cuda")
    start = replace(NEUTRAL, **declared.start("ordered"))
    assert build_program(reference, start, "cuda").plan == start
    others = {"tile": 64, "slices": 2, "parts": 2, "hoist": True, "prefetch": "registers"}
    assert others.keys() == dict(declared.needs).keys()
    for name, value in others.items():
        earlier = (
            "^invariant code motion" if name == "hoist" else "^$"
        )  # a pass that comes before, and has nothing to move
        with pytest.raises(PlanError, match=rf"need Plan\({name}=|{earlier}"):
            build_program(reference, replace(start, **{name: value}), "cuda")
        assert complete_plan(Plan(**{name: value}), GPU, work("gravity", 16_384)).reciprocity == "off"


@lw.pairwise
def ripple(target: Place, source: Place) -> lw.f32:
    return lw.sin(lw.dot(target.at - source.at, target.at - source.at))


@lw.pairwise
def wide_ripple(target: Place, source: Place) -> lw.f64:
    return lw.cos(lw.f64(lw.dot(target.at - source.at, target.at - source.at)))


@pytest.mark.parametrize(
    ("kernel", "fast", "most"),
    [(ripple, False, 16), (ripple, True, 64), (wide_ripple, False, 8)],
    ids=["float32", "fast", "float64"],
)
def test_loops_with_sines_have_few_copies(kernel: Any, fast: bool, most: int) -> None:
    """Their code fills the instruction cache, unless it is the short one of fast math; float64 has few copies
    anyway.
    """
    place = Place.__record__
    arguments = PairwiseArguments(("target", place, lw.SoA()), ("source", place, lw.SoA()), {}, False)
    described = describe_work(build_pairwise(kernel.lowered, arguments, I32), 1_000_000)
    assert described.lengthy
    chosen = complete_plan(Plan(fast_math=fast), GPU, described)
    assert chosen.unroll * chosen.targets <= most
    assert (chosen.unroll * chosen.targets == 64) == fast
