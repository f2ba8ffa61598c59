"""Copies of ghosts beside the rest of a step: nobody reads a stale one, whenever a copy runs.

GPUs are stood for by a device whose kernels the interpreter runs. What would run on a stream of its own runs at once,
or as late as it may, when something waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.explanation.mesh_scaling import DividedStep, RowsTime, scaling
from lanewise.launch.sent import Sent
from lanewise.patterns.sitewise import split_ghosts
from lanewise.patterns.sitewise.blocks import Cut, ghost_depth
from lanewise.patterns.sitewise.halo import GhostExchange, leaves_needed
from lanewise.patterns.sitewise.site_state import held_bytes, hold_bytes
from lanewise.patterns.sitewise.split_ghosts import halves_of, touched_by_halves
from lanewise.patterns.sitewise.streaming import FORMS, TWO_COPIES
from lanewise.primitives import sent_rows
from lanewise.runtime.cuda import Landed
from lanewise.runtime.nvrtc import compile_cubin
from tests.lbm.boxes import WALL
from tests.lbm.kernels import colliding, exact
from tests.mesh import interpreted_gpu, test_lattices
from tests.mesh.test_lattices import Case, case, coupled, follow, heated, observer_of

NAME = interpreted_gpu.NAME
WHEN = ("at once", "between", "late")


@dataclass(eq=False)
class Late(Landed):
    """Copies that run when something waits for them."""

    work: Callable[[], object] | None
    events: dict[str, Any] = field(default_factory=dict[str, Any])

    def wait(self) -> None:
        work, self.work = self.work, None
        if work is not None:
            work()


def copies(when: str) -> Callable[[Any, GhostExchange], Late]:
    """In place of streams for copies: columns are taken, and put where they belong, at once or late."""

    def aside(devices: Any, exchange: GhostExchange) -> Late:
        del devices
        if when == "late":
            return Late(exchange)
        exchange.moves()

        def put() -> None:
            for a in exchange.arrivals:
                a.to.put(a.came)

        if when == "between":
            return Late(put)
        put()
        return Late(None)

    return aside


@pytest.fixture(autouse=True)
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps of all boxes in halves, on devices that are none."""
    interpreted_gpu.install(monkeypatch)
    monkeypatch.setitem(test_lattices.LAYOUTS, NAME, test_lattices.LAYOUTS["cuda:0"])
    monkeypatch.setattr(split_ghosts, "LEAST_MOVED", 0)


def parts_of(n: int) -> Any:
    return lw.Mesh(NAME, parts=n)


def same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


def small(form: str, edges: dict[str, Any], layout: lw.Layout | None = None) -> Case:
    pair, shape = exact(lw.D2Q9), (41, 4)
    mask = np.random.default_rng(0).choice((0, 0, 0, WALL, *pair.kinds), shape)
    c = replace(case(0, "cpu"), pair=pair, shape=shape, mask=mask, edges=edges, streaming=form, layout=layout)
    return replace(c, look=observer_of(lw.D2Q9, exact), values=pair.values, curved=False)


@pytest.mark.quick("late-in-place")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("when", WHEN)
def test_halves_have_the_bits_of_whole_steps(form: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_ghosts, "aside", copies(when))
    for edges in ({"x": "slip"}, {"y": ("wall", "slip")}):
        c = small(form, edges)
        wanted = follow(c, NAME)
        for n in (2, 3, 5):
            same(follow(c, parts_of(n)), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_flows_of_all_kinds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_ghosts, "aside", copies(WHEN[seed % 3]))
    c = case(seed, NAME)
    shape = (41, *(min(n, 3) for n in c.shape[1:]))
    mask = c.mask[tuple(slice(n) for n in c.shape)]
    mask = np.resize(mask, shape)
    values = {n: (v if np.ndim(v) < 2 else np.resize(v, shape)) for n, v in c.values.items()}
    c = replace(c, shape=shape, mask=mask, values=values, layout=None, curved=False)
    wanted = follow(c, NAME)
    for n in (2, 3):
        same(follow(c, parts_of(n)), wanted)


@pytest.mark.slow
@pytest.mark.parametrize("when", WHEN)
def test_fields_and_couplings(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_ghosts, "aside", copies(when))
    edges = {"y": ("hot", "cold")}
    same(heated(parts_of(3), edges, True), heated(NAME, edges, True))
    forms = ("pull", "in-place")
    same(coupled(parts_of(2), forms, {}), coupled(NAME, forms, {}))


@lw.stencil(lw.D2Q5)
def warm(t: lw.Field[lw.f32], rate: lw.f32) -> lw.f32:
    return t[0] + rate * (t[1] + t[2] + t[3] + t[4] - 4 * t[0])


@pytest.mark.parametrize("rows", [1, 4])
def test_threads_with_several_rows(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread has as many rows at a face as elsewhere: a face is as thick."""
    monkeypatch.setattr(split_ghosts, "aside", copies("late"))
    plan = lw.Plan(targets=4, rows=rows, block=256, across=64)

    def run(where: Any) -> Any:
        t = np.random.default_rng(0).random((43, 8))
        sites = warm.sites(t.shape, t=t, device=where)
        warm.run(sites, 3, rate=0.2, plan=plan)
        return test_lattices.host(warm.field(sites, "t"))

    same([run(parts_of(n)) for n in (1, 2, 3, 5)], [run(NAME)] * 4)


# ------------------------------------------------------------ nothing stale

ACTS = ("step", "steps", "look", "populations", "force", "set", "save and put back", "other step")
FLUID = colliding(lw.D2Q9)
MEANS = observer_of(lw.D2Q9, colliding)
LID_MOVES = {"lid_velocity": (0.05, 0.0)}


def acted(acts: Iterable[str], form: str, where: Any) -> list[Any]:
    """What is seen of a flow, or of warmth that spreads, to which this happens."""
    rng, seen, shape, spreads = np.random.default_rng(1), list[Any](), (25, 2), form == TWO_COPIES.name
    mask = np.where(np.arange(50).reshape(shape) % 7 == 3, WALL, 0)
    flow, values = FLUID.flow, {**FLUID.values, **LID_MOVES}
    sites: Any
    if spreads:
        sites = warm.sites(shape, device=where)
    else:
        sites = flow.sites(shape, mask=mask, edges={"x": "slip"}, streaming=form, device=where)

    def put() -> None:
        if spreads:
            warm.set_fields(sites, t=rng.random(shape))
        else:
            flow.set_populations(sites, 0.01 * rng.standard_normal((9, *shape)))

    def run(steps: int, **others: Any) -> None:
        if spreads:
            warm.run(sites, steps, rate=0.1 * others.get("omega", 1.0))
        else:
            flow.run(sites, steps, **{**values, **others})

    def state() -> tuple[Any, int, bool]:
        return held_bytes(sites).copy(), sites.step, sites.fresh

    put()
    kept = state()
    for act in acts:
        match act:
            case "step":
                run(1)
            case "other step":  # of another loop, over the same memory
                run(1, omega=1.3)
            case "steps":
                run(3)
            case "set":
                put()
            case "save and put back":
                now = state()
                data, sites.step, sites.fresh = kept
                hold_bytes(sites, data)
                kept = now
            case _ if spreads:
                seen.append(warm.field(sites, "t"))
            case "look":
                seen += MEANS(sites, **LID_MOVES)
            case "populations":
                seen.append(flow.populations(sites, **LID_MOVES))
            case _:
                seen.append(flow.force(sites, ["wall"], **LID_MOVES))
    return [test_lattices.host(x) for x in seen]


def same_after(acts: list[str], form: str, parts: int, when: str, device: str) -> None:
    acts = [*acts, "steps", "populations"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_ghosts, "aside", copies(when))
        same(acted(acts, form, lw.Mesh(device, parts=parts)), acted(acts, form, device))


STEPPED = [*FORMS, TWO_COPIES.name]


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(ACTS), min_size=2, max_size=6),
    st.sampled_from(STEPPED),
    st.sampled_from([2, 3]),
    st.sampled_from(WHEN),
    st.sampled_from([NAME, "cpu"]),
)
def test_no_order_of_acts_reads_a_stale_ghost(acts: list[str], form: str, parts: int, when: str, device: str) -> None:
    same_after(acts, form, parts, when, device)


@pytest.mark.slow
@pytest.mark.parametrize("form", STEPPED)
def test_every_act_behind_steps_reads_no_stale_ghost(form: str) -> None:
    for n, act in enumerate(ACTS):
        for steps in (["step"], ["step", "step"]):
            same_after([*steps, act], form, 2, WHEN[n % 3], NAME)
            same_after([*steps, act], form, 2, WHEN[n % 3], "cpu")  # whole steps
    back = "save and put back"
    same_after(["step", back, "other step", back, "step"], form, 2, "late", NAME)
    same_after(["step", "step", back, "other step", "other step", back, "step"], form, 2, "late", NAME)


def test_ghosts_that_are_there_are_not_brought_again() -> None:
    c = small("pull", {"x": "slip"})
    sites = c.sites(parts_of(2))
    c.pair.flow.run(sites, 2, **c.values)
    there = sites.ghosts.there
    assert there is sites.exchange(sites.phase, sites.step)
    c.pair.flow.populations(sites, lid_velocity=c.values["lid_velocity"])
    assert sites.ghosts.there is there
    c.pair.flow.set_populations(sites, c.start())
    assert sites.ghosts.there is None


# ------------------------------------------------------------ halves

LATTICES = (test_lattices.D1Q3, lw.D2Q9, lw.D3Q19, lw.D3Q27)


@pytest.mark.parametrize("lattice", LATTICES, ids=lambda x: x.name)
@pytest.mark.parametrize("form", [*FORMS.values(), TWO_COPIES], ids=lambda x: x.name)
@pytest.mark.parametrize("thick", [1, 3])
def test_halves_are_all_layers_once(lattice: lw.Lattice, form: Any, thick: int) -> None:
    shape = (59, *[4] * (lattice.dimension - 1))
    for around in (True, False):
        cut = Cut(shape, (3, *[1] * (lattice.dimension - 1)))
        for n, phase in enumerate(form.phases):
            following = form.phase(n + 1, fresh=False)
            for block in cut.blocks(ghost_depth(form), (around, *[True] * (lattice.dimension - 1))):
                span = block.spans[0]
                halves = halves_of(span, lattice, phase, following, thick)
                updated = [x for s in (*halves.faces, halves.inner) for x in range(s.start, s.stop)]
                own = span.inner(int(phase.put_links))
                assert sorted(updated) == list(range(own.start, own.stop))
                sent = [d for d in (1, 2) if leaves_needed(lattice, following, (d, *[0] * (lattice.dimension - 1)))]
                for d in sent:  # the layers that are sent are in no link's reach of the others
                    far = d + int(phase.put_links)
                    if span.below:
                        assert halves.inner.start >= span.below + far
                    if span.above:
                        assert halves.inner.stop <= span.below + len(span.owned) - far


@pytest.mark.parametrize("form", [*FORMS.values(), TWO_COPIES], ids=lambda x: x.name)
def test_the_rest_of_a_step_meets_no_copy(form: Any) -> None:
    """And the faces of the next step do."""
    for step in range(2):
        phase = form.phase(step, fresh=False)
        faces, sent, rest = touched_by_halves(form, phase, step)
        assert not rest.meets(sent)
        assert faces.meets(sent) or form.buffers > 1
        following = touched_by_halves(form, form.phase(step + 1, fresh=False), step + 1)[0]
        assert following.meets(sent)


def test_a_step_says_what_runs_beside_what() -> None:
    c = small("pull", {"x": "slip"})
    stepper = c.pair.flow.stepper(c.sites(parts_of(3)), **c.values)
    stepper.run(1)
    calls = stepper.calls_now()
    name = calls[-1].name
    assert [call.name for call in calls[-3:]] == [f"faces of {name}", f"ghosts of {name}", name]
    said = str(stepper.explain())
    assert "ghosts of populations: copied while layers that are not at faces are updated" in said
    one = c.pair.flow.stepper(c.sites(NAME), **c.values)
    assert len(one.calls_now()) == len(calls) - 3


def test_hidden_copies_take_no_time_as_long_as_parts_compute() -> None:
    devices = ("cuda:0", "cuda:1")

    def efficiency(hidden: bool, nbytes: int) -> float:
        def divide(parts: int) -> DividedStep:
            rows = (1000,) * parts
            copied = {(p, q): nbytes for p in range(parts) for q in range(parts) if p != q}
            return DividedStep(rows, rows, (Sent("ghosts", copied, hidden=hidden),))

        found = scaling(divide, devices, [RowsTime("step", 1000, 1e-3, 0.0)], 1e11)
        assert found is not None
        return found.found[2].share

    assert efficiency(True, 10_000_000) == pytest.approx(1.0)  # 0.1 ms of 1 ms
    assert efficiency(False, 10_000_000) == pytest.approx(1 / 1.1)
    assert efficiency(True, 300_000_000) == pytest.approx(1 / 3)  # 3 ms


# ------------------------------------------------------------ on a GPU


@pytest.mark.cuda
@pytest.mark.parametrize("seed", range(24))
def test_halves_on_parts_of_one_gpu(seed: int) -> None:
    test_lattices.check(seed, "cuda:0", (2, 3))


@pytest.mark.parametrize("row", [1, 2, 4, 8, 48, 512])
def test_rows_are_sent_by_one_kernel(row: int) -> None:
    """Its text compiles for all sizes of rows; no GPU is needed."""
    size, text = sent_rows.text_of(row, (256, 512))
    assert row % size == 0
    assert compile_cubin(text, "send_rows", "sm_90").code
    if size > 1:  # memory that begins at a smaller multiple has smaller words
        assert sent_rows.text_of(row, (256 + size // 2, 512))[0] == size // 2


@pytest.mark.cuda
@pytest.mark.parametrize(("dtype", "words"), [("?", 0), ("u2", 0), ("u4", 0), ("u8", 0), ("u8", 6), ("u8", 64)])
def test_rows_come_where_they_belong(dtype: str, words: int) -> None:
    import cupy

    rng = np.random.default_rng(0)
    rows = rng.integers(0, 60000, (40, words) if words else 40).astype(dtype)
    sources, targets = rng.permutation(40)[:17], rng.permutation(50)[:17]
    to = np.zeros((50, *rows.shape[1:]), dtype)
    there = cupy.asarray(to)
    sent_rows.sender("cuda:0", cupy.asarray(rows), cupy.asarray(sources), there, cupy.asarray(targets))()
    to[targets] = rows[sources]
    np.testing.assert_array_equal(there.get(), to)
