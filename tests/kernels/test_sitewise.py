"""The interface of sitewise kernels: kinds, walls, values, observers, populations, plans, and every refusal's exact text."""

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.planning.plan import Plan
from lanewise.support.errors import ArgumentError, CompileError, PlanError
from tests.written import module

D2Q9 = lw.D2Q9


def make_flow() -> Any:
    """Populations relax towards each other; sources, and walls of two kinds."""

    @lw.sitewise(D2Q9)
    def flow(f: lw.populations, omega: lw.f32):
        """A model."""
        mean = lw.f32(0)
        for q in D2Q9:
            mean += f[q]
        for q in D2Q9:
            f[q] += omega * (q.weight * mean - f[q])

    @flow.kind(1, "source")
    def source(f: lw.populations, level: lw.f32, push: lw.vec2):
        for q in D2Q9:
            f[q] = q.weight * (level + 3 * q.along(push))

    flow.wall(2, "wall")
    flow.wall(3, "lid", velocity="lid_velocity")
    return flow


FLOW = make_flow()
MASK = np.array([[0, 0, 0, 2, 0], [0, 1, 0, 0, 0], [0, 0, 2, 0, 1], [0, 0, 0, 0, 0]])
EDGES = {"y": ("wall", "lid")}
VALUES: dict[str, Any] = {"omega": 0.5, "level": 2.0, "push": (0.125, -0.25), "lid_velocity": (0.125, 0.0)}
LID = {"lid_velocity": VALUES["lid_velocity"]}


def whole(shape: tuple[int, ...] = (4, 5), seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 40, (9, *shape)).astype(np.float32)


def full(**changed: Any) -> Any:
    """Sites with every kind, of the interpreter."""
    return FLOW.sites((4, 5), **{"mask": MASK, "edges": EDGES, "device": "python", **changed})


def plain(**changed: Any) -> Any:
    return FLOW.sites((4, 5), **{"device": "python", **changed})


def refusal(call: Any, kind: type[Exception] = ArgumentError) -> str:
    with pytest.raises(kind) as error:
        call()
    return str(error.value)


# ---------------------------------------------------------------- making kernels


def test_a_kernel_names_itself():
    assert repr(FLOW) == "<lanewise sitewise kernel flow on D2Q9>"
    assert (FLOW.__name__, FLOW.__doc__, FLOW.lattice, FLOW.real.name) == ("flow", "A model.", D2Q9, "f32")
    assert [(w.number, w.name, w.velocity) for w in FLOW.walls] == [(2, "wall", None), (3, "lid", "lid_velocity")]


def test_a_kind_gives_the_function_back():
    """So that it stays a function of plain Python, and may serve several kernels."""
    flow, other = make_flow(), make_flow()

    def settle(f: lw.populations):
        f[0] = 0.0

    assert flow.kind(5, "settled")(settle) is settle
    assert other.kind(6, "calm")(settle) is settle
    f = np.ones(9)
    settle(f)
    assert f[0] == 0.0


@pytest.mark.parametrize("given", [9, "D2Q9", None], ids=str)
def test_a_kernel_needs_a_lattice(given):
    assert refusal(lambda: lw.sitewise(given)) == (
        f"@lw.sitewise takes a lattice, for example @lw.sitewise(lw.D2Q9); found {given!r}"
    )


def test_numbers_and_names_are_used_once():
    flow = make_flow()
    wanted = "wanted an integer from 1 to 31; 0 is the function itself"
    assert refusal(lambda: flow.kind(0, "inlet")) == f"kind 0 ('inlet'): {wanted}"
    assert refusal(lambda: flow.wall(32, "rough")) == f"kind 32 ('rough'): {wanted}"
    assert refusal(lambda: flow.kind(2, "inlet")) == "kind 2 is 'wall' already; choose another number for 'inlet'"
    assert refusal(lambda: flow.wall(1, "rough")) == "kind 1 is 'source' already; choose another number for 'rough'"
    assert refusal(lambda: flow.wall(4, "source")) == "'source' is kind 1 already; choose another name for kind 4"
    assert refusal(lambda: flow.kind(4, "flow")) == "'flow' is kind 0 already; choose another name for kind 4"
    assert refusal(lambda: flow.wall(4, "slip")) == "kind 4: 'slip' is a rule of the edges; choose another name"


def test_sites_know_only_the_kinds_that_were_made():
    assert refusal(lambda: FLOW.sites((1, 2), mask=[[0, 7]], device="python")) == (
        "the mask has kind 7 1 times, first at (0, 1); the kinds are 0, 1, 2, 3 "
        "(@flow.kind(number, name) and flow.wall(number, name) make others)"
    )
    assert refusal(lambda: plain(edges={"x": "source"})) == (
        "the edge 'source' of x is unknown; wanted one of 'periodic', 'slip', 'outflow', 'wall', 'lid'"
    )


# ---------------------------------------------------------------- values


WITHOUT = {n: {m: v for m, v in VALUES.items() if m != n} for n in VALUES}
ALL = "omega, level, push, lid_velocity"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, f"flow needs {ALL}; its parameters are {ALL}"),
    (WITHOUT["omega"], f"flow needs omega; its parameters are {ALL}"),
    (WITHOUT["push"], f"flow needs push; its parameters are {ALL}"),
    (WITHOUT["lid_velocity"], f"flow needs lid_velocity; its parameters are {ALL}"),
    ({**VALUES, "tau": 1}, f"flow has no parameter 'tau'; its parameters are {ALL}"),
    ({**VALUES, "omega": "fast"}, "flow: 'omega' must be an f32, or an array with one per site; found str 'fast'"),
    ({**VALUES, "omega": lw.by_step(lambda n: 1.0)}, "flow: 'omega' takes no lw.by_step, which is for kernel.bind(...); wanted an f32, or an array with one value per site that another call of the loop writes"),
    ({**VALUES, "lid_velocity": lw.by_step(lambda n: (0.1, 0.0))}, "flow: 'lid_velocity' takes no lw.by_step, which is for kernel.bind(...); wanted a vec2"),
    ({**VALUES, "omega": None}, "flow: 'omega' must be an f32, or an array with one per site; found NoneType None"),
    ({**VALUES, "omega": 1j}, "flow: 'omega' must be an f32, or an array with one per site; found complex 1j"),
    ({**VALUES, "omega": (1, 2)}, "flow: 'omega' must be an f32, or an array of shape (4, 5) with one per site; found tuple (1, 2)"),
    ({**VALUES, "omega": [[1, 2], [3]]}, "flow: 'omega' must be an f32, or an array of shape (4, 5) with one per site; found list [[1, 2], [3]]"),
    ({**VALUES, "omega": np.ones((5, 4))}, "flow: 'omega' must be an f32, or an array of shape (4, 5) with one per site; found an array of float64 with shape (5, 4)"),
    ({**VALUES, "omega": np.ones((4, 5), complex)}, "flow: 'omega': an array of numbers is needed, found ndarray with dtype complex128"),
    ({**VALUES, "omega": 1e300}, "flow: 'omega' holds float32: float64 values up to 1e+300 do not fit"),
    ({**VALUES, "omega": np.full(20, 1e300)}, "flow: 'omega' holds float32: float64 values up to 1e+300 do not fit"),
    ({**VALUES, "push": 1.0}, "flow: 'push' must be a vec2, or an array of shape (4, 5, 2) with one per site; found float 1.0"),
    ({**VALUES, "push": (1, 2, 3)}, "flow: 'push' must be a vec2, or an array of shape (4, 5, 2) with one per site; found tuple (1, 2, 3)"),
    ({**VALUES, "push": np.ones((2, 4, 5))}, "flow: 'push' must be a vec2, or an array of shape (4, 5, 2) with one per site; found an array of float64 with shape (2, 4, 5)"),
    ({**VALUES, "lid_velocity": 1.0}, "flow: 'lid_velocity' must be a vec2, the same for all sites; found float 1.0"),
    ({**VALUES, "lid_velocity": (1, 2, 3)}, "flow: 'lid_velocity' must be a vec2, the same for all sites; found tuple (1, 2, 3)"),
    ({**VALUES, "lid_velocity": np.ones((4, 5, 2))}, "flow: 'lid_velocity' must be a vec2, the same for all sites; found an array of float64 with shape (4, 5, 2)"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "text"), REFUSED, ids=[text[:60] for _, text in REFUSED])
def test_values_that_do_not_fit(values, text):
    sites = full()
    for call in (
        lambda: FLOW(sites, **values),
        lambda: FLOW.run(sites, 3, **values),
        lambda: FLOW.compile(sites, **values),
    ):
        assert refusal(call) == text
    assert sites.step == 0


def test_a_kind_that_does_not_occur_needs_no_value_and_may_have_one():
    sites = plain()
    FLOW(sites, omega=0.5)
    FLOW(sites, **VALUES)
    assert sites.step == 2
    assert refusal(lambda: FLOW(sites)) == "flow needs omega; its parameters are omega"
    assert refusal(lambda: FLOW(sites, omega=1, tau=2)) == "flow has no parameter 'tau'; its parameters are omega"
    walled = plain(edges={"y": "lid"})
    assert refusal(lambda: FLOW(walled, omega=1)) == "flow needs lid_velocity; its parameters are omega, lid_velocity"


def test_a_value_a_site_in_any_shape_is_the_same_as_many_values():
    """As (count,), as the box, with vectors, as lists, in other precisions and orders of memory."""
    omega = np.random.default_rng(1).integers(0, 4, (4, 5)) / 4
    push = np.random.default_rng(2).integers(-2, 3, (4, 5, 2)) / 8
    wanted = None
    given: list[tuple[Any, Any]] = [
        (omega.astype("f4"), push.astype("f4")),
        (omega.ravel(), push.reshape(20, 2)),
        (omega.tolist(), np.asfortranarray(push)),
    ]
    for o, p in given:
        sites = full()
        FLOW.set_populations(sites, whole())
        FLOW.run(sites, 3, **{**VALUES, "omega": o, "push": p})
        found = FLOW.populations(sites, **LID)
        wanted = found if wanted is None else wanted
        np.testing.assert_array_equal(found, wanted)
    one_by_one = full(device="python", streaming="pull")
    FLOW.set_populations(one_by_one, whole())
    FLOW(one_by_one, **{**VALUES, "omega": omega, "push": push})
    departed = np.stack([one_by_one.current.numpy()[f"q{q}"] for q in range(9)]).reshape(9, 4, 5)
    begin = whole()
    weights = np.array([q.weight for q in D2Q9])
    relaxed = begin + omega * (weights[:, None, None] * begin.sum(axis=0) - begin)
    np.testing.assert_allclose(departed[:, MASK == 0], relaxed[:, MASK == 0], rtol=1e-6, atol=1e-5)
    sourced = weights[:, None, None] * (2 + 3 * np.einsum("qa,yxa->qyx", np.array(D2Q9.velocities), push))
    np.testing.assert_allclose(departed[:, MASK == 1], sourced[:, MASK == 1], rtol=1e-6)


def test_two_kinds_share_a_value_of_one_name():
    @lw.sitewise(D2Q9)
    def left(f: lw.populations, level: lw.f32):
        f[0] = level

    @left.kind(1, "right")
    def right(f: lw.populations, level: lw.f32):
        f[0] = -level

    sites = left.sites((1, 2), mask=[[0, 1]], device="python")
    left(sites, level=3.0)
    assert left.populations(sites)[0].tolist() == [[3.0, -3.0]]


def test_a_value_that_also_moves_a_wall_is_a_vector_for_all():
    @lw.sitewise(D2Q9)
    def push(f: lw.populations, speed: lw.vec2):
        f[0] = speed.x

    @lw.sitewise(D2Q9)
    def fill(f: lw.populations, speed: lw.f32):
        f[0] = speed

    for kernel in (push, fill):
        kernel.wall(1, "wall", velocity="speed")
    sites = push.sites((2, 2), edges={"x": "wall"}, device="python")
    push(sites, speed=(0.5, 0.0))
    assert (push.populations(sites, speed=(0.5, 0.0))[0] == 0.5).all()
    assert refusal(lambda: push(sites, speed=np.ones((2, 2, 2)))) == (
        "push: 'speed' must be a vec2, the same for all sites; found an array of float64 with shape (2, 2, 2)"
    )
    other = fill.sites((2, 2), edges={"x": "wall"}, device="python")
    assert refusal(lambda: fill(other, speed=1.0)) == (
        "'speed' is an f32 of fill and the velocity of a wall, a vec2; wanted one type"
    )


def test_kinds_may_have_functions_of_one_name():
    def named(value: float) -> Any:
        def same(f: lw.populations):
            f[0] = value

        return same

    @lw.sitewise(D2Q9)
    def same(f: lw.populations):
        f[0] = 1.0

    same.kind(1, "one")(named(2.0))
    same.kind(2, "other")(named(3.0))
    for device in ("python", "cpu"):
        sites = same.sites((1, 3), mask=[[0, 1, 2]], device=device)
        same(sites)
        assert same.populations(sites)[0].tolist() == [[1.0, 2.0, 3.0]]


# ---------------------------------------------------------------- state


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoAS(), lw.AoSoA(4)], ids=str)
def test_populations_come_back_as_they_were_set_but_zero_at_walls(streaming, layout):
    sites, begin = full(streaming=streaming, layout=layout), whole()
    FLOW.set_populations(sites, begin)
    found = FLOW.populations(sites, **LID)
    np.testing.assert_array_equal(found[:, MASK != 2], begin[:, MASK != 2])
    assert not found[:, MASK == 2].any()
    assert found.shape == (9, 4, 5)
    assert found.dtype == np.float32


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_looking_changes_nothing_and_setting_starts_again(streaming):
    sites = full(streaming=streaming)
    FLOW.set_populations(sites, whole())
    for step in range(5):
        before = [c.data.copy() for c in sites.copies]
        seen = FLOW.populations(sites, **LID)
        np.testing.assert_array_equal(FLOW.populations(sites, **LID), seen)
        FLOW.force(sites, ["wall", "lid"], **LID)
        assert [c.data.tobytes() for c in sites.copies] == [b.tobytes() for b in before]
        assert sites.step == step
        FLOW(sites, **VALUES)
    other = full(streaming=streaming)
    FLOW.set_populations(other, seen)
    FLOW.set_populations(sites, seen)
    assert (sites.step, sites.fresh) == (0, True)
    for s in (sites, other):
        FLOW.run(s, 3, **VALUES)
    np.testing.assert_array_equal(FLOW.populations(sites, **LID), FLOW.populations(other, **LID))


def test_all_streaming_forms_give_the_same_bits():
    for steps in (0, 1, 2, 3, 6):
        found = []
        for streaming in ("pull", "push", "in-place"):
            sites = full(streaming=streaming)
            FLOW.set_populations(sites, whole(seed=steps) / 7)
            FLOW.run(sites, steps, **VALUES)
            assert sites.step == steps
            found.append(FLOW.populations(sites, **LID))
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("streaming", ["in-place", pytest.param("pull", marks=pytest.mark.slow)])
def test_twice_the_same_bits_when_compiled_with_a_value_a_site(streaming):
    """Many slabs of sites on several threads."""
    shape, found = (400, 700), []
    omega = np.linspace(0, 1, 400 * 700, dtype=np.float32).reshape(shape)
    for _ in range(2):
        sites = FLOW.sites(shape, edges=EDGES, streaming=streaming, layout=lw.AoS(), device="cpu")
        FLOW.set_populations(sites, whole(shape) / 7)
        FLOW.run(sites, 7, omega=omega, **LID)
        found.append([bytes(copy.data) for copy in sites.copies])
    assert found[0] == found[1]


def test_steps_in_one_run_or_in_many():
    many, one = full(), full()
    for sites in (many, one):
        FLOW.set_populations(sites, whole())
    FLOW.run(many, 5, **VALUES)
    stepper = FLOW.stepper(one, **VALUES)
    for steps in (1, 0, 3, 1):
        stepper.run(steps)
    assert many.step == one.step == 5
    np.testing.assert_array_equal(FLOW.populations(many, **LID), FLOW.populations(one, **LID))


def test_no_step_changes_nothing_and_fewer_are_refused():
    sites = full()
    FLOW.set_populations(sites, whole())
    FLOW.run(sites, 0, **VALUES)
    assert (sites.step, sites.fresh) == (0, True)
    assert refusal(lambda: FLOW.run(sites, -1, **VALUES)) == "flow: -1 steps requested; wanted 0 or more"
    assert refusal(lambda: FLOW.run(sites, 10**13, **VALUES)) == (
        "flow: 10000000000000 steps requested; wanted at most 1,000,000,000,000"
    )
    np.testing.assert_array_equal(FLOW.populations(sites, **LID)[:, MASK != 2], whole()[:, MASK != 2])


def test_populations_of_another_shape_are_refused():
    sites = full()
    assert (
        refusal(lambda: FLOW.set_populations(sites, np.zeros((9, 5, 4))))
        == "populations have the shape (9, 4, 5), found (9, 5, 4)"
    )
    assert (
        refusal(lambda: FLOW.set_populations(sites, np.zeros((4, 5))))
        == "populations have the shape (9, 4, 5), found (4, 5)"
    )
    assert refusal(lambda: FLOW.populations(sites)) == f"flow needs lid_velocity; its parameters are {ALL}"


def test_populations_beyond_the_storage_type_are_refused_and_change_nothing():
    sites = full(storage="f16")
    FLOW.set_populations(sites, whole())
    FLOW.run(sites, 3, **VALUES)
    before, step = bytes(sites.current.data), sites.step
    for value, found in ((1e6, "1e+06"), (-70_000, "70000"), (65_520.0, "65520")):
        given = whole()
        given[8, 3, 4] = value
        text = f"populations are stored as f16, which ends at 65504; found values up to {found}"
        assert refusal(lambda given=given: FLOW.set_populations(sites, given)) == text
        assert refusal(lambda given=given: FLOW.set_populations(sites, given.astype("i8"))) == text
        assert (sites.step, sites.fresh, bytes(sites.current.data)) == (step, False, before)
    wide = np.full((9, 4, 5), 1e300)
    assert refusal(lambda: FLOW.set_populations(full(), wide)) == (
        "populations are stored as f32, which ends at 3.40282e+38; found values up to 1e+300"
    )
    assert refusal(lambda: FLOW.set_populations(sites, [[["x"] * 5] * 4] * 9)) == (
        "populations: an array of numbers is needed, found list with dtype <U1"
    )
    assert (sites.step, bytes(sites.current.data)) == (step, before)
    rounded = whole()
    rounded[0, 0, 0], rounded[1, 0, 0], rounded[2, 0, 0] = (
        65_519.0,
        np.inf,
        np.nan,
    )  # rounds to the largest; infinite and no numbers before
    FLOW.set_populations(sites, rounded)
    np.testing.assert_array_equal(FLOW.populations(sites, **LID)[:3, 0, 0], [65_504, np.inf, np.nan])


def test_populations_are_taken_from_any_array_of_numbers():
    sites = full()
    for given in (whole().astype("i8"), whole().astype("f8"), whole().tolist(), np.asfortranarray(whole())):
        FLOW.set_populations(sites, given)
        np.testing.assert_array_equal(FLOW.populations(sites, **LID)[:, MASK != 2], whole()[:, MASK != 2])


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["sites", "plan", "steps", "walls", "weights", "outflow_speed"])
def test_values_cannot_be_called_as_the_arguments_of_a_call(name):
    text = f"@lw.sitewise(lw.D2Q9)\ndef flow(f: lw.populations, omega: lw.f32, {name}: lw.f32):\n    f[0] += {name}\n"
    flow = module(text).flow
    message = refusal(lambda: flow.sites((2, 2), device="python"), CompileError)
    place, rest = message.split(" ", 1)
    assert place == "kernels.py:2:44:"
    head = "    def flow(f: lw.populations, omega: lw.f32, "
    assert rest == (
        f"{name!r} is an argument of the call itself\n{head}{name}: lw.f32):\n{' ' * len(head)}{'^' * len(f'{name}: lw.f32')}\n"
        f"  found: a value of that name of flow\n  wanted: another name"
    )


def test_velocities_of_walls_cannot_be_called_as_the_arguments_of_a_call():
    text = "kind 4 ('belt'): the velocity 'plan' is an argument of the call itself; choose another name"
    assert refusal(lambda: make_flow().wall(4, "belt", velocity="plan")) == text


# ---------------------------------------------------------------- observers


def density(f: lw.populations) -> lw.f32:
    total = lw.f32(0)
    for q in D2Q9:
        total += f[q]
    return total


def flux(f: lw.populations, scale: lw.f32) -> tuple[lw.vec2, lw.f32]:
    return scale * lw.vec2(f[1] - f[2], f[3] - f[4]), f[0]


@pytest.mark.parametrize("streaming", ["pull", "push", "in-place"])
def test_observers_see_what_arrives_next(streaming):
    sites = full(streaming=streaming)
    FLOW.set_populations(sites, whole())
    for _ in range(4):
        f = FLOW.populations(sites, **LID).reshape(9, -1)
        found = FLOW.observer(density)(sites, **LID)
        assert (found.shape, found.dtype) == ((20,), np.float32)
        np.testing.assert_allclose(found, f.sum(axis=0), rtol=1e-6)
        vectors, rest = FLOW.observer(flux)(sites, scale=2.0, **LID)
        assert vectors.shape == (20, 2)
        np.testing.assert_allclose(vectors, 2 * np.stack([f[1] - f[2], f[3] - f[4]], axis=1), rtol=1e-6)
        np.testing.assert_array_equal(rest, f[0])
        assert not found[MASK.ravel() == 2].any()
        FLOW(sites, **VALUES)


def test_an_observer_takes_a_value_a_site():
    sites = plain()
    FLOW.set_populations(sites, whole())
    scale = np.arange(20, dtype=np.float32).reshape(4, 5)
    vectors, _ = FLOW.observer(flux)(sites, scale=scale)
    f = whole().reshape(9, -1)
    np.testing.assert_allclose(vectors, scale.reshape(-1, 1) * np.stack([f[1] - f[2], f[3] - f[4]], axis=1), rtol=1e-6)


def test_observers_that_are_refused():
    sites = full()

    def nothing(f: lw.populations):
        f[0] = f[1]

    def wide(f: lw.dpopulations) -> lw.f64:
        return f[0]

    assert refusal(lambda: FLOW.observer(nothing)(sites, **LID)) == "nothing returns nothing to observe"
    assert refusal(lambda: FLOW.observer(wide)(sites, **LID)) == "wide computes in f64, and flow in f32"
    assert (
        refusal(lambda: FLOW.observer(flux)(sites, **LID)) == "flux needs scale; its parameters are scale, lid_velocity"
    )
    assert (
        refusal(lambda: FLOW.observer(density)(sites)) == "density needs lid_velocity; its parameters are lid_velocity"
    )
    assert refusal(lambda: FLOW.observer(density)(sites, **LID, tau=1)) == (
        "density has no parameter 'tau'; its parameters are lid_velocity"
    )
    assert FLOW.observer(density)(sites, **VALUES).shape == (20,)  # what the flow takes may be given, too


# ---------------------------------------------------------------- forces


def test_the_force_is_the_momentum_that_turned_round():
    """One site between two walls: all that left upwards came back from the lid, downwards from the wall."""
    sites = FLOW.sites((1, 1), edges={"y": ("wall", "lid")}, device="python")
    begin = np.arange(9, dtype=float).reshape(9, 1, 1)
    FLOW.set_populations(sites, begin)
    e = np.array(D2Q9.velocities)
    none = {"lid_velocity": (0.0, 0.0)}
    for name, down in (("lid", True), ("wall", False)):
        came = [q for q in range(9) if (e[q, 1] < 0) == down and e[q, 1]]
        wanted = sum(-2 * e[q] * begin[q, 0, 0] for q in came)
        force = FLOW.force(sites, [name], **none)
        assert force.dtype == np.float64
        np.testing.assert_allclose(force, wanted)
        weights = sum(-2 * e[q] * D2Q9[q].weight for q in came)
        np.testing.assert_allclose(FLOW.force(sites, [name], weights=True, **none), wanted + weights, rtol=1e-6)
    both = FLOW.force(sites, ("lid", "wall"), **none)
    np.testing.assert_allclose(both, FLOW.force(sites, ["lid"], **none) + FLOW.force(sites, ["wall"], **none))


def test_a_force_needs_walls():
    sites = full()
    known = "they are 'wall', 'lid'"
    assert refusal(lambda: FLOW.force(sites, ["walls"], **LID)) == f"'walls' is no kind of walls; {known}"
    assert refusal(lambda: FLOW.force(sites, ["wall", "source"], **LID)) == f"'source' is no kind of walls; {known}"
    assert refusal(lambda: FLOW.force(sites, ["lid"])) == f"flow needs lid_velocity; its parameters are {ALL}"

    @lw.sitewise(D2Q9)
    def open_box(f: lw.populations):
        f[0] = f[0]

    assert refusal(lambda: open_box.force(open_box.sites((2, 2), device="python"), ["wall"])) == (
        "'wall' is no kind of walls; they are none"
    )


def test_walls_that_are_nowhere_take_no_force():
    sites = plain(edges={"x": "wall"})
    FLOW.set_populations(sites, whole())
    assert FLOW.force(sites, ["lid"]).tolist() == [0.0, 0.0]


# ---------------------------------------------------------------- sharing


def test_two_flows_share_sites():
    """What one leaves the other finds, between any two phases."""
    first, second = make_flow(), make_flow()
    for streaming in ("pull", "push", "in-place"):
        shared, own = full(streaming=streaming), full(streaming=streaming)
        for sites in (shared, own):
            FLOW.set_populations(sites, whole())
        for step in range(5):
            (first if step % 2 else second)(shared, **VALUES)
        FLOW.run(own, 5, **VALUES)
        assert shared.step == own.step
        np.testing.assert_array_equal(FLOW.populations(shared, **LID), FLOW.populations(own, **LID))


# ---------------------------------------------------------------- plans


NO_LOOP = "it has no loop over sources"
ILLEGAL = [
    (Plan(tile=64), f"tiling cannot be applied to flow: {NO_LOOP}"),
    (Plan(targets=2), "thread merging cannot be applied to flow: on a CPU neighbouring sites share SIMD registers"),
    (Plan(unroll=4), f"unrolling cannot be applied to flow: {NO_LOOP}"),
    (Plan(accumulate="f64"), "float64 accumulation cannot be applied to flow: its sites sum nothing over sources"),
    (Plan(reciprocity="ordered"), "reciprocity cannot be applied to flow: its elements are no pairs"),
    (Plan(slices=2), "Plan(slices=2): only a GPU divides the sources of one target; on a CPU slices is 1"),
    (Plan(parts=2), "Plan(parts=2): only a GPU divides the sources of one target; on a CPU parts is 1"),
    (Plan(prefetch="registers"), "prefetching cannot be applied to flow: a CPU prefetches by itself"),
    (Plan(registers=32), "register cap cannot be applied to flow: only the compiler of a GPU takes a cap; on a CPU registers is 0"),
    (Plan(vector_bits=128), "SIMD width cannot be applied to flow: wanted 0, 256 or 512 bits, found 128"),
    (Plan(self_term="drop"), f"if-elimination cannot be applied to flow: {NO_LOOP}"),
    (
        Plan(hoist=True),
        "invariant code motion cannot be applied to flow: it computes every element once: there is no loop over sources to move values out of",
    ),
    (
        Plan(fission=True),
        "loop splitting cannot be applied to flow: what departs from a site is computed from all that arrives there: no population is a "
        "result by itself",
    ),
    (
        Plan(uniforms="global"),
        "uniforms in global memory cannot be applied to flow: uniform arguments are passed in registers on a CPU; only the threads of a GPU "
        "load them",
    ),
    (Plan(rsqrt="exact"), "reciprocal square root cannot be applied to flow: it takes no lw.rsqrt"),
]  # fmt: skip


@pytest.mark.parametrize("branches", ["together", "apart"])
@pytest.mark.parametrize(("plan", "text"), ILLEGAL, ids=[str(plan) for plan, _ in ILLEGAL])
def test_plans_that_do_not_fit_are_refused(plan, text, branches):
    """Also by the interpreter, which runs the reference kernel: what would not compile elsewhere is an error here."""
    sites = plain(edges={"x": "wall"}, streaming="pull")
    given = Plan(branches=branches).filled(plan)
    assert refusal(lambda: FLOW(sites, omega=1.0, plan=given), PlanError) == text
    assert sites.step == 0


def test_both_plans_of_branches_give_the_same_bits():
    found = []
    for branches in ("together", "apart"):
        sites = plain(device="cpu", edges={"x": "wall"})
        FLOW.set_populations(sites, whole())
        FLOW.run(sites, 5, plan=Plan(branches=branches), omega=0.5)
        found.append(bytes(sites.current.data))
        assert FLOW.compile(sites, plan=Plan(branches=branches), omega=0.5).plan.branches == branches
    assert found[0] == found[1]


def test_sites_that_cannot_be_apart_are_refused():
    """A wish is granted or refused; a phase whose sites all do the same is one class, together and apart."""
    sites = plain(device="cpu", mask=MASK // 2 * 2, streaming="pull")
    sites.step, sites.fresh = 1, False  # the first step follows no links
    sites.dense, sites.marks, sites.solids = True, None, None  # as on a GPU where many sites of a large box are special
    assert refusal(lambda: FLOW.compile(sites, plan=Plan(branches="apart"), omega=0.5), PlanError) == (
        "branch splitting cannot be applied to flow: so many of its sites are special that each reads its flags"
    )
    assert FLOW.compile(sites, omega=0.5).plan.branches == "together"
    even = plain(device="cpu", edges={"x": "wall"}, streaming="in-place")
    assert FLOW.compile(even, plan=Plan(branches="apart"), omega=0.5).plan.branches == "together"
    even.step = 1
    assert FLOW.compile(even, plan=Plan(branches="apart"), omega=0.5).plan.branches == "apart"


def test_a_compiled_step_shows_its_plan_and_source():
    sites = plain(device="cpu", edges={"x": "wall"})
    FLOW(sites, omega=0.5)
    call = FLOW.compile(sites, omega=0.5)
    assert call.plan.branches == "apart"
    assert "define internal i32 @flow_bulk_range(" in call.source
    assert "define internal i32 @flow_special_range(" in call.source
    call()
    assert sites.step == 1  # a call alone counts nothing


# ---------------------------------------------------------------- storage


def test_float16_on_a_cpu_is_refused_and_the_interpreter_has_it():
    assert refusal(lambda: FLOW.sites((2, 2), storage="f16", device="cpu")) == (
        "storage='f16' is for GPUs, which convert float16 in one instruction; on a CPU choose 'f32'"
    )
    sites = full(storage="f16")
    FLOW.set_populations(sites, whole())
    FLOW.run(sites, 2, **VALUES)
    wide = full()
    FLOW.set_populations(wide, whole())
    FLOW.run(wide, 2, **VALUES)
    found, wanted = FLOW.populations(sites, **LID), FLOW.populations(wide, **LID)
    assert found.dtype == np.float32
    assert not np.array_equal(found, wanted)
    np.testing.assert_allclose(found, wanted, rtol=3e-3, atol=1e-2)
