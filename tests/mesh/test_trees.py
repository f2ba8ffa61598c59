"""Calls over lw.Tree on a mesh: the bits of one device, whatever the parts are, and wherever a run is cut."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise import Mesh
from lanewise.patterns.mesh_launch import MeshLaunch
from lanewise.patterns.search import picker
from lanewise.patterns.search.tree import pairs
from lanewise.patterns.search.tree.dealt import BLOCK, LEAST, Dealt, dealt_height
from lanewise.patterns.search.tree.group import GROUP_SIZE, LARGEST
from lanewise.patterns.search.tree.shape import TreeShape
from lanewise.runtime.host_device import HostDevice
from lanewise.support.errors import ArgumentError, DeviceError, FarFieldWarning
from tests.far_kernels import Star, plummer
from tests.mesh import interpreted_gpu
from tests.mesh.test_calls import host
from tests.mesh.test_calls import same as equal
from tests.search.clouds import cloud

# coarse trees are quick, and their errors of no matter here
pytestmark = pytest.mark.filterwarnings("ignore::lanewise.FarFieldWarning")
PARTS = (1, 2, 3, 5)
LAYOUTS = [lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(8)]
TREES = [
    lw.Tree(order=2),
    lw.Tree(theta=0.3, order=0, leaf=7),
    lw.Tree(accuracy=1e-2),
    lw.Tree(accuracy=1e-3, order=2, leaf=64),
    lw.Tree(order=2, method="dual"),
    lw.Tree(order=1, method="dual", leaf=16),
    lw.Tree(theta=0.8, order=1, method="dual", leaf=64),
]


class Body(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return d * (source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3)


@lw.pairwise
def several(target: Body, source: Body) -> tuple[lw.f32, lw.vec3, lw.f32]:
    """Of one radial form; a body does not meet itself."""
    if lw.same(target, source):
        return 0.0, lw.vec3(0.0), 0.0
    d = source.position - target.position
    inverse = lw.rsqrt(lw.dot(d, d) + 0.01)
    return source.mass * inverse, d * (source.mass * inverse**3), 1.0


@lw.elementwise
def kick_drift(body: Body, acceleration: lw.vec3, dt: lw.f32):
    body.velocity += acceleration * dt
    body.position += body.velocity * dt


def bodies(count: int, place: Any = "cpu", *, layout: Any = None, name: str = "clusters", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    position, _ = cloud(name, count, 3, "f4", seed)
    fields: dict[str, Any] = {
        "position": position,
        "velocity": rng.normal(size=(count, 3)),
        "mass": rng.uniform(0.5, 1.5, count),
    }
    return Body.array(**fields, layout=layout, device=place)


def results(found: Any) -> list[Any]:
    return [host(x).copy() for x in (found if isinstance(found, tuple) else (found,))]


def alike(found: Any, wanted: Any) -> None:
    for one, other in zip(results(found), results(wanted), strict=True):
        equal(one, other)


# ------------------------------------------------------------ which groups


@given(st.integers(0, 40 * LEAST), st.integers(1, 9), st.booleans(), st.sampled_from([GROUP_SIZE, LARGEST]))
@example(LEAST, 2, False, GROUP_SIZE)
@example(LEAST + 1, 2, True, LARGEST)
def test_every_target_is_dealt_to_one_part(count: int, parts: int, pieces: bool, group: int) -> None:
    dealt = (Dealt.in_pieces if pieces else Dealt.in_turn)(count, parts)
    blocks = [range(b, min(b + dealt.block, count)) for b in range(0, count, dealt.block)]
    for part in range(parts):
        own = blocks[part::parts]
        assert dealt.places(part) == sum(map(len, own)) <= dealt.room
        assert len(own) <= 1 or not pieces
        numbers = dealt.values(part, group)
        assert all(n >= 0 for n in numbers.values())
        assert numbers[BLOCK] * group == dealt.block
    assert dealt.block % LEAST == 0
    most = max(dealt.places(p) for p in range(parts))
    assert most - count / parts <= LEAST if not pieces else most <= dealt.block


@given(st.integers(1, 20 * LEAST), st.integers(1, 6), st.sampled_from([1, 7, 32, 100, 256]))
def test_nodes_above_the_targets_of_a_part(count: int, parts: int, leaf: int) -> None:
    shape, dealt = TreeShape(count, leaf), Dealt.in_pieces(count, parts)
    nodes, starts = shape.heights
    for part in range(parts):
        begin, numbers = part * dealt.block, dealt.nodes(part, shape, lambda height: 1 << (height // 2))
        end = begin + dealt.places(part)
        for height in range(shape.top):
            first, many, threads = (numbers[n] for n in dealt_height(height))
            assert threads == many << (height // 2)
            of_height = nodes[starts[height] : starts[height + 1]]
            low, high = shape.places(*shape.table[of_height].T)
            wanted = of_height[(low < end) & (high > begin) & (begin < end)]
            np.testing.assert_array_equal(nodes[first : first + many], wanted)


# ------------------------------------------------------------ calls


# Walks by angles and by estimates, and pairs of groups, of the kernels that other tests here compile too.
@pytest.mark.quick(*(f"{n}-{TREES[k].describe()}" for n, k in ((700, 0), (700, 1), (700, 5), (1, 0), (1, 5))))
@pytest.mark.parametrize("tree", TREES, ids=lw.Tree.describe)
@pytest.mark.parametrize("count", [1, 700, 5003])
def test_calls_have_the_bits_of_one_device(tree: lw.Tree, count: int) -> None:
    kernel, one = pull.using(tree), bodies(count)
    wanted = kernel(one, one, 1e-4)
    for parts in PARTS:
        many = one.to(Mesh("cpu", parts=parts))
        alike(kernel(many, many, 1e-4), wanted)
        bound = kernel.bind(many, many, 1e-4)
        alike(bound(), wanted)
        alike(bound(), wanted)


def test_threads_that_share_a_node_have_the_bits_of_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "HOST_THREADS", 2**15)
    kernel, one = lw.Pairwise(pull.python).using(lw.Tree(order=1, method="dual", leaf=16)), bodies(3003)
    wanted = kernel(one, one, 1e-4)
    for parts in PARTS:
        many = one.to(Mesh("cpu", parts=parts))
        alike(kernel(many, many, 1e-4), wanted)


@pytest.mark.parametrize("tree", [*(pytest.param(TREES[n], marks=pytest.mark.slow) for n in (0, 2)), TREES[5]], ids=str)
def test_more_blocks_than_parts_and_fewer(tree: lw.Tree) -> None:
    kernel = pull.using(tree)
    for count in (LEAST, 3 * LEAST + 33):
        one = bodies(count, name="uniform")
        wanted = kernel(one, one, 1e-3)
        for parts in (2, 3):
            many = one.to(Mesh("cpu", parts=parts))
            alike(kernel(many, many, 1e-3), wanted)


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.sampled_from(["uniform", "clusters", "plane", "line", "duplicates", "outliers", "single place"]),
    st.integers(0, 400),
    st.integers(0, 90),
    st.sampled_from(PARTS),
    st.sampled_from(LAYOUTS),
    st.sampled_from(TREES),
    st.sampled_from([0.01, 1.0]),
)
def test_of_all_clouds_layouts_and_trees(
    name: str, count: int, others: int, parts: int, layout: lw.Layout, tree: lw.Tree, softening2: float
) -> None:
    kernel, mesh = pull.using(tree), Mesh("cpu", parts=parts)
    one = bodies(count, name=name, layout=layout)
    targets = bodies(others, name="uniform", layout=lw.AoSoA(8), seed=1)
    many = one.to(mesh)
    alike(kernel(many, many, softening2), kernel(one, one, softening2))
    if tree.method is None:
        wanted = kernel(targets, one, softening2)
        alike(kernel(targets.to(mesh), many, softening2), wanted)
        alike(kernel(targets.to(mesh), one, softening2), wanted)  # sources may lie elsewhere


@pytest.mark.slow
def test_results_of_all_kinds_and_a_body_itself() -> None:
    kernel, one = several.using(lw.Tree(theta=0.5, order=1)), bodies(1500)
    wanted = kernel(one, one)
    assert set(host(wanted[2])) == {len(one) - 1}
    for parts in PARTS:
        many = one.to(Mesh("cpu", parts=parts))
        alike(kernel(many, many), wanted)


@pytest.mark.slow
def test_float64_and_a_softening_of_each_target() -> None:
    """A function of tier P is met as records at chosen points."""

    @lw.pairwise(search=lw.Tree(order=3))
    def softened(target: Star, source: Star) -> lw.f64:
        d = source.position - target.position
        return source.mass * lw.rsqrt(lw.dot(d, d) + target.softening**2 + d.x * d.x)

    rng = np.random.default_rng(2)
    fields = {"position": rng.normal(size=(1400, 3)), "mass": rng.random(1400), "softening": 0.1 + rng.random(1400)}
    make: Any = Star
    one = make.array(**fields)
    for kernel, values in ((softened, ()), (plummer.using(lw.Tree(accuracy=1e-5, order=3)), (1e-2,))):
        wanted = kernel(one, one, *values)
        for parts in (2, 5):
            many = one.to(Mesh("cpu", parts=parts))
            alike(kernel(many, many, *values), wanted)


@pytest.mark.slow
def test_results_of_the_callers_own_and_plans() -> None:
    one, kernel = bodies(1300), pull.using(lw.Tree(order=1))
    many = one.to(Mesh("cpu", parts=3))
    out = pull(many, many, 1.0)
    plan = lw.Plan(vector_bits=256)
    assert kernel(many, many, 1e-2, out=out) is out
    alike(out, kernel(one, one, 1e-2))
    assert kernel(many, many, 1e-2, out=out, plan=plan) is out
    alike(out, kernel(one, one, 1e-2, plan=plan))
    alike(kernel.compile(many, many, 1.0)(many, many, 1e-2), kernel(one, one, 1e-2))
    part = many[100:900]
    alike(kernel(part, part, 1e-2), kernel(one[100:900], one[100:900], 1e-2))


def test_calls_follow_what_is_written() -> None:
    kernel = pull.using(lw.Tree(accuracy=1e-2))
    one, many = bodies(900), bodies(900, Mesh("cpu", parts=3))
    here, there = kernel.bind(one, one, 1e-3), kernel.bind(many, many, 1e-3)
    for factor in (2.0, 0.1):
        for array in (one, many):
            array.position = host(array.position) * factor
            array[17].mass = 40.0 * factor
        alike(there(), here())


def test_the_interpreter() -> None:
    kernel, one = pull.using(lw.Tree(order=1, leaf=8)), bodies(40, "python")
    wanted = kernel(one, one, 1e-2)
    many = one.to(Mesh("python", parts=2))
    alike(kernel(many, many, 1e-2), wanted)


@pytest.mark.slow
def test_results_go_between_devices() -> None:
    """Parts on two devices have their own copies of all; the interpreter contracts nothing."""
    mesh = Mesh("cpu", parts=3)
    mesh._set(("cpu", "python", "cpu"), (), 0)  # pyright: ignore[reportPrivateUsage]
    kernel, one, few = pull.using(lw.Tree(theta=0.8, order=0)), bodies(LEAST + 40), bodies(30, seed=3)
    many = one.to(mesh)
    for targets, divided in ((one, many), (few, few.to(mesh))):
        wanted = host(kernel(targets, one, 1e-3))
        found = host(kernel(divided, many, 1e-3))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6 * np.abs(wanted).max())
    text = str(kernel.compile(many, many, 1e-3).explain())
    over_links = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) bytes per call", text)]
    assert sum(over_links) == (16 + 12) * len(one) * 2


@pytest.mark.slow_cases("tree: accuracy 0.1 by estimates, order 3, leaves of 32")
@pytest.mark.parametrize(
    "tree", [lw.Tree(order=1), lw.Tree(accuracy=1e-1), lw.Tree(order=1, method="dual")], ids=lw.Tree.describe
)
def test_kernels_of_a_gpu(tree: lw.Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run by the interpreter: groups are warps, and indices have 32 bits."""
    interpreted_gpu.install(monkeypatch)
    kernel, one = lw.pairwise(pull.python).using(tree), bodies(70, interpreted_gpu.NAME)
    wanted = kernel(one, one, 1e-2)
    many = one.to(Mesh(interpreted_gpu.NAME, parts=2))
    alike(kernel(many, many, 1e-2), wanted)
    alike(kernel.bind(many, many, 1e-2)(), wanted)


# ------------------------------------------------------------ loops


def loop_of(array: Any, kernel: Any) -> Any:
    force = kernel.bind(array, array, 1e-3)
    return lw.steps([force, kick_drift.bind(array, force.results[0], 1e-2)])


def state(array: Any) -> list[bytes]:
    return [np.asarray(values).tobytes() for values in array.numpy().values()]


@pytest.mark.parametrize(
    "tree", [TREES[0], pytest.param(TREES[2], marks=pytest.mark.slow), TREES[5]], ids=lw.Tree.describe
)
def test_a_loop_goes_from_one_device_to_a_mesh_and_back(tree: lw.Tree) -> None:
    """Orders are made in every 32nd step, and kept between them: also by the loop that goes on."""
    kernel, whole = pull.using(tree), bodies(600, name="uniform")
    loop_of(whole, kernel).run(70)
    wanted, array, step, orders = state(whole), bodies(600, name="uniform"), 0, None
    for place, count in (("cpu", 10), ("cpu*3", 15), ("cpu*2", 20), ("cpu", 1), ("cpu*5", 24)):
        array = array.to(Mesh(place) if "*" in place else place)
        loop = loop_of(array, kernel)
        loop.step = step
        if orders is not None:
            loop.orders = orders
        loop.run(count)
        step, orders = loop.step, loop.orders
        assert [o.shape for o in orders] == [(600,)]
    assert state(array) == wanted
    assert "order of pull" in str(loop_of(array, kernel).explain())


def test_a_loop_over_other_targets() -> None:
    kernel = pull.using(lw.Tree(order=1))

    def left(place: Any) -> list[bytes]:
        targets, sources = (bodies(n, name="uniform", seed=n, place=place) for n in (130, 300))
        force, back = kernel.bind(targets, sources, 1e-3), kernel.bind(sources, targets, 1e-3)
        calls = [force, back, *(kick_drift.bind(a, c.results[0], 1e-2) for a, c in ((targets, force), (sources, back)))]
        loop = lw.steps(calls)
        loop.run(40)
        assert [len(o) for o in loop.orders] == [300, 130, 130, 300]
        loop.orders = loop.orders
        loop.run(5)
        return [*state(targets), *state(sources)]

    wanted = left("cpu")
    assert left(Mesh("cpu", parts=3)) == wanted


def test_profiles_do_not_change_bits() -> None:
    ends: list[list[bytes]] = []
    for profile in (None, lw.Profile()):
        array = bodies(200, Mesh("cpu", parts=2))
        force = pull.using(lw.Tree(order=1)).bind(array, array, 1e-3)
        lw.steps([force, kick_drift.bind(array, force.results[0], 1e-2)], profile=profile).run(40)
        ends.append(state(array))
    assert ends[0] == ends[1]


# ------------------------------------------------------------ what is said


def test_explanations_have_parts_and_bytes() -> None:
    many = bodies(3000, Mesh("cpu", parts=3))
    call = pull.using(lw.Tree(order=2)).bind(many, many, 1e-3)
    text = str(call.compiled.explain())
    assert "3 parts (3 x cpu), 1,000 rows each" in text
    assert "on cpu: 84,000 bytes per call, memory of the host, " in text  # 16 + 12 of each body
    assert "tree: theta 0.6, order 2" in text
    assert isinstance(call.launch, MeshLaunch)
    assert [name for name, _ in call.launch.works()] == [
        "sources of pull", *(f"pull, part {n}" for n in range(3)), "results of pull",
        *(f"results of pull by rows, part {n}" for n in range(3)),
    ]  # fmt: skip
    for row in ("pull_walk, part 2", "pull_home, part 2", "results of pull"):
        assert row in text


def test_first_calls_of_a_kind_are_compared() -> None:
    @lw.pairwise(search=lw.Tree(theta=0.9, order=1))
    def swinging(target: Body, source: Body) -> lw.f32:
        d = source.position - target.position
        r = lw.sqrt(lw.dot(d, d) + 1e-4)
        return lw.cos(100.0 * r) / r

    one = bodies(2000, name="uniform")
    many = one.to(Mesh("cpu", parts=3))
    with pytest.warns(FarFieldWarning, match="swinging over tree.* are not those of all pairs"):
        swinging(one, one)
    anew = lw.pairwise(search=swinging.search)(swinging.python)
    with pytest.warns(FarFieldWarning, match="swinging over tree.* are not those of all pairs"):
        anew.bind(many, many)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        swinging(many, many)  # as one device has said it
        anew(many, many)


def test_trees_that_were_calibrated_for_one_device_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mesh may have its sources in another layout, of which another tree was found to be fast."""

    def find(*_: Any) -> Any:
        raise AssertionError

    kernel, many = lw.pairwise(pull.python).using(lw.Tree(accuracy=1e-2)), bodies(50, Mesh("cpu", parts=2))
    monkeypatch.setattr(picker, "has_entries", bool)
    monkeypatch.setattr(picker.CalibratedTrees, "find", find)
    kernel(many, many, 1e-3)


def refusal(place: Any, attempt: Any) -> str:
    with pytest.raises(ArgumentError) as error:
        attempt(place)
    return str(error.value).partition("; found in step")[0]


def unsound(place: Any) -> None:
    array = bodies(100, place)
    array[77].position.y = np.nan
    pull.using(lw.Tree(order=1))(array, array, 1e-3)


def unsound_later(place: Any) -> None:
    array = bodies(100, place)
    call = pull.using(lw.Tree(order=1)).bind(array, array, 1e-3)
    call()
    array[77].position.y = np.inf
    call()


def too_accurate(place: Any) -> None:
    array = bodies(100, place)
    pull.using(lw.Tree(accuracy=1e-9))(array, array, 1e-3)


def dual_of_others(place: Any) -> None:
    array = bodies(100, place)
    pull.using(lw.Tree(method="dual"))(array, array.copy(), 1e-3)


def of_another_type(place: Any) -> None:
    array = bodies(100, place)
    pull.using(lw.Tree())(array, np.zeros((100, 3)), 1e-3)


@pytest.mark.parametrize("attempt", [unsound, unsound_later, too_accurate, dual_of_others])
def test_bad_input_has_the_messages_of_one_device(attempt: Any) -> None:
    wanted = refusal("cpu", attempt)
    for parts in (1, 3):
        assert refusal(Mesh("cpu", parts=parts), attempt) == wanted


def test_what_is_no_array_of_records() -> None:
    assert "'source' must be an array of records" in refusal(Mesh("cpu", parts=2), of_another_type)


def test_memory_is_asked_before_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    many = bodies(100_000, Mesh("cpu", parts=2), name="uniform")
    kernel = pull.using(lw.Tree())
    for free, text in (
        (1_000_000, "all sources of pull"),
        (3_000_000, "a call of pull needs .* for the groups of a tree"),
    ):

        def available(_: HostDevice, free: int = free) -> int:
            return free

        monkeypatch.setattr(HostDevice, "free_memory", available)
        with pytest.raises(DeviceError, match=text):
            kernel.bind(many, many, 1e-3)
