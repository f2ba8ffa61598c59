"""What a call runs follows from its own arguments and plan: never from the calls before it.

Caps of registers are lifted where a compiler would spill, but not where they were requested. A stand-in for a GPU,
whose compiler spills wherever there is a cap, says so without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.explanation import build
from lanewise.explanation.measure import Times
from lanewise.launch import executable, shaped_arrays, support
from lanewise.launch.executable import Executable
from lanewise.models.devices import table_model
from lanewise.passes.reciprocity import sizes
from lanewise.patterns.tuning_jobs import specialisation_of
from lanewise.planning.decisions import ASKED, LIFTED
from lanewise.planning.plan import DECLARED, FIELDS, NEUTRAL, CompletePlan, Plan
from lanewise.runtime import cuda_device
from lanewise.runtime.nvrtc import Cubin, Resources
from lanewise.support.errors import PlanError
from tests.launch.stand_in_gpu import DEVICE, Array, put_in

pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")


@lw.record
class Body:
    position: lw.vec3
    mass: lw.f32
    near: lw.f32


def drift(body: Body, dt: lw.f32):
    body.position += dt * body.mass * body.position


def pull(target: Body, source: Body) -> lw.vec3:
    d = source.position - target.position
    return source.mass * lw.rsqrt(lw.dot(d, d) + 0.1) ** 3 * d


def shifted(y: lw.index, x: lw.index, a: lw.Array2[lw.f32], b: lw.Array2[lw.f32]):
    b[y, x] = 2 * a[y, x]


def flow(f: lw.populations, omega: lw.f32):
    total = lw.f32(0)
    for q in lw.D2Q9:
        total += f[q]
    for q in lw.D2Q9:
        f[q] += omega * (q.weight * total - f[q])


class Case:
    """A kernel that is made anew, and its arguments."""

    def __init__(self, make: Callable[[], Any], *given: Any, **named: Any) -> None:
        self.make, self.given, self.named = make, given, named


def bodies() -> Any:
    return Body.array(position=np.random.default_rng(3).random((300, 3)), mass=np.ones(300))


def cases() -> dict[str, Case]:
    some = bodies()
    grid = lw.StaticGrid(radius=0.2, world=lw.Periodic((1, 1, 1)))
    a, b = (Array(np.ones((20, 40), "f4")) for _ in range(2))
    return {
        "elements": Case(lambda: lw.elementwise(drift), some, 0.1),
        "pairs": Case(lambda: lw.pairwise(pull), some, some),
        "search": Case(lambda: lw.pairwise(search=grid)(pull), some, some),
        "threads": Case(lambda: lw.threadwise(shifted), a, b, grid=(20, 40)),
    }


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[CompletePlan]]:
    """The plans of the kernels that were made ready to launch, on the stand-in."""
    put_in(monkeypatch)
    none = Resources(32, 0, 0, 0, 0)
    monkeypatch.setattr(shaped_arrays, "_is_array", lambda value: isinstance(value, Array))
    monkeypatch.setattr(executable, "compile_cubin", lambda *_: Cubin(b"machine code", none, ""))
    monkeypatch.setattr(cuda_device, "begin_cubin", lambda *_: None)
    monkeypatch.setattr(support, "_spills", lambda made: _capped(made.program.plan))
    plans: list[CompletePlan] = []
    pieces = Executable.pieces

    def watched(self: Executable, *given: Any) -> Any:
        plans.append(self.program.plan)
        return pieces(self, *given)

    monkeypatch.setattr(Executable, "pieces", watched)
    with lw.device(DEVICE):
        yield plans


def _capped(plan: CompletePlan) -> int:
    """Bytes that are spilled: none with one block, many with a cap."""
    return 64 * (plan.min_blocks != 1) + (256 - plan.registers) * (plan.registers > 0)


CAPS = [Plan(registers=64), Plan(registers=0), Plan(min_blocks=2), Plan(min_blocks=1), Plan(min_blocks=0)]


def requests() -> list[Plan | None]:
    """No plan, caps of all kinds, and every field by a value other than the neutral one."""
    others = [Plan(**{n: v}) for n in FIELDS for v in _values(n)[:1]]
    both = [Plan(registers=64, min_blocks=2), Plan(block=128, min_blocks=2), Plan(block=128)]
    return [None, Plan(), *CAPS, *both, *others]


def _values(name: str) -> list[Any]:
    o = DECLARED[name]
    return [v for v in dict.fromkeys((*o.cuda, *o.elementwise, *o.items, *o.points)) if v != o.neutral]


def compiled_with(kernel: Any, case: Case, asked: Plan | None) -> Any:
    """The kernel that a plan compiles, or None where it is refused."""
    try:
        return kernel.compile(*case.given, plan=asked, **case.named)
    except PlanError:
        return None


def plan_of(compiled: Any) -> CompletePlan | None:
    return None if compiled is None else compiled.plan


@pytest.mark.slow_cases("search")
@pytest.mark.parametrize("name", ["elements", "pairs", "search", "threads"])
def test_a_kernel_follows_from_its_own_plan(name: str, ran: list[CompletePlan]) -> None:
    case = cases()[name]
    alone = [(w, plan_of(compiled_with(case.make(), case, w))) for w in requests()]
    assert sum(plan is not None for _, plan in alone) > len(CAPS)
    for order in (alone, alone[::-1]):
        kernel = case.make()
        for asked, plan in order:
            compiled = compiled_with(kernel, case, asked)
            assert plan_of(compiled) == plan, asked
            if compiled is None:
                continue
            ran.clear()
            kernel.bind(*case.given, plan=asked, **case.named)
            assert plan in ran, asked
            ran.clear()
            compiled.bind(*case.given, **case.named)  # whatever it was made of, it is this one
            assert plan in ran, asked
        ran.clear()
        kernel(*case.given, **case.named)
        assert alone[0][1] in ran


@pytest.mark.parametrize("name", ["elements", "pairs", "search", "threads"])
def test_caps_are_lifted_but_where_they_were_asked_for(name: str, ran: list[CompletePlan]) -> None:
    case = cases()[name]
    kernel = case.make()
    for asked in CAPS:
        compiled = compiled_with(kernel, case, asked)
        assert compiled is not None
        fixed = {n: v for n, v in asked.as_dict().items() if v is not None}
        assert {n: getattr(compiled.plan, n) for n in fixed} == fixed
    lifted = compiled_with(kernel, case, Plan(registers=64))
    assert lifted.executable.capped is None
    tight = case.make().compile(*case.given, plan=Plan(min_blocks=4, registers=0), **case.named)
    assert (tight.plan.min_blocks, tight.plan.registers) == (4, 0)


@pytest.mark.slow
def test_explanations_tell_lifted_caps_from_those_that_were_asked_for(
    ran: list[CompletePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lanewise.explanation.rows_of_calls.device_model", lambda _: table_model())
    monkeypatch.setattr(build, "stored_times", lambda _: Times())
    case = cases()["pairs"]
    kernel = case.make()
    default = kernel.compile(*case.given)
    before, now = default.executable.capped, default.plan
    (field,) = (n for n in ("registers", "min_blocks") if getattr(before, n) != getattr(now, n))
    report = default.explain(measure_resources=False)
    assert report.origin == "default"
    assert dict(report.decisions.reasons)[field] == LIFTED
    assert report.decisions.plan == now
    assert ASKED not in report.decisions.reasons.values()
    same = kernel.compile(*case.given, plan=Plan(**{field: getattr(now, field)}))
    assert same.plan == now
    assert same.explain(measure_resources=False).decisions.why(field) == ASKED
    tiled = kernel.compile(*case.given, plan=Plan(block=64)).explain(measure_resources=False)
    asked = [n for n, why in tiled.decisions.reasons.items() if why == ASKED]
    assert asked == ["block"]  # and not what follows from it
    again = default.bind(*case.given).compiled.explain(measure_resources=False)
    assert again.decisions.plan == now


def test_steps_of_sites_follow_from_their_own_plan(ran: list[CompletePlan]) -> None:
    def box() -> Any:
        kernel = lw.sitewise(lw.D2Q9)(flow)
        sites = kernel.sites((16, 16), device=DEVICE)
        return kernel, sites

    def plan_with(kernel: Any, sites: Any, asked: Plan | None) -> CompletePlan | None:
        try:
            return kernel.compile(sites, plan=asked, omega=0.2).plan
        except PlanError:
            return None

    alone = [(w, plan_with(*box(), w)) for w in requests()]
    for order in (alone, alone[::-1]):
        kernel, sites = box()
        for asked, plan in order:
            assert plan_with(kernel, sites, asked) == plan, asked


def test_a_tuned_plan_that_more_elements_cannot_have_gives_way(
    ran: list[CompletePlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same class of sizes, measured with fewer elements: the call has its default plan."""
    kernel, some = lw.pairwise(pull), bodies()
    calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
    given = calls.given((some, some), {})
    default = kernel.compile(some, some).plan
    tuned = Plan(reciprocity="ordered", targets=2, block=32, min_blocks=1).filled(NEUTRAL)
    assert default.reciprocity == "off"
    calls.tuned.adopt((Plan(), specialisation_of(calls.subject, given)), tuned)
    assert kernel.compile(some, some).plan == tuned
    kernel(some, some)
    monkeypatch.setattr(sizes, "MOST", 10)  # pairs of tiles: 300 elements have 15
    assert kernel.compile(some, some).plan == default
    with pytest.raises(
        PlanError, match="300 elements have 15 pairs of tiles of 64, and a launch on a GPU counts at most 10;"
    ):
        kernel(some, some, plan=tuned)
    assert set(ran) == {tuned}
