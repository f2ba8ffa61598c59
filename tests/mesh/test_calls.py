"""Calls over arrays on a mesh have the bits of one part, whatever the number of parts."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise import Mesh, SplitArray
from lanewise.support.errors import ArgumentError, DeviceError, InputError

DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.cuda)]
LAYOUTS = [lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS(), lw.AoSoA(8)]
COUNTS = st.integers(0, 40)
PARTS = st.integers(1, 6)


class Body(lw.Record):
    position: lw.vec3
    velocity: lw.dvec3
    mass: lw.f32
    serial: lw.i64


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.position - target.position
    return d * (source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3)


@lw.pairwise
def others(target: Body, source: Body) -> tuple[lw.f64, lw.ArgMin[lw.f32]]:
    if lw.same(target, source):
        return 0.0, 1e30
    d = source.position - target.position
    return 1 / lw.f64(lw.dot(d, d)), lw.dot(d, d)


@lw.elementwise
def push(body: Body, force: lw.vec3, dt: lw.f64) -> tuple[lw.f32, lw.i64]:
    body.velocity += lw.dvec3(force) * dt
    body.position += lw.vec3(body.velocity * dt)
    return lw.length(body.position) * body.mass, body.serial * 2


@lw.elementwise
def twice(x: lw.f64) -> lw.f64:
    return 2 * x + 1


@lw.pairwise
def near(target: Body, source: Body) -> tuple[lw.vec3, lw.f64, lw.i32, lw.ArgMax[lw.f32]]:
    if lw.same(target, source):
        return lw.vec3(0, 0, 0), 0.0, 0, -1.0
    d = source.position - target.position
    return d * source.mass, 1 / lw.f64(lw.dot(d, d) + 1e-3), 1, source.mass


@lw.elementwise
def numbered(body: Body) -> lw.f32:
    return body.mass * lw.index_of(body)


@lw.elementwise
def looked_up(body: Body, table: lw.Array1[lw.f32]) -> lw.f32:
    return table[lw.i32(body.serial)]


@lw.threadwise
def filled(i: lw.index, a: lw.Array1[lw.f32]):
    a[i] = 1.0


def bodies(n: int, layout: lw.Layout, device: str | Mesh) -> Any:
    rng = np.random.default_rng(n)
    return Body.array(
        position=rng.standard_normal((n, 3)), velocity=rng.standard_normal((n, 3)), mass=rng.random(n),
        serial=np.arange(n), layout=layout, device=device,
    )  # fmt: skip


def several(device: str, parts: int) -> Mesh:
    return Mesh(device, parts=parts)


def host(value: Any) -> np.ndarray[Any, Any]:
    return (
        value.numpy() if isinstance(value, SplitArray) else value.get() if hasattr(value, "get") else np.asarray(value)
    )


def same(found: Any, wanted: Any) -> None:
    found, wanted = host(found), host(wanted)
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def steps(b: Any, count: int) -> list[Any]:
    """What some steps of everything leave, with the bound calls of a loop and without."""
    left: list[Any] = []
    for _ in range(count):
        force = pull(b, b, softening2=1e-3)
        left += [force, *push(b, force, dt=1e-2), *others(b, b)]
    force = pull.bind(b, b, softening2=1e-3)
    lw.steps([force, push.bind(b, force.results[0], dt=1e-2)]).run(3)
    return [host(x) for x in (*left, force.results[0], *b.numpy().values())]


@pytest.mark.slow_cases("AoS-cpu", "AoAS(16)-cpu")
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_every_number_of_parts_has_the_bits_of_one(device: str, layout: lw.Layout) -> None:
    wanted = steps(bodies(37, layout, several(device, 1)), 2)
    for parts in (2, 3, 5):
        for found, want in zip(steps(bodies(37, layout, several(device, parts)), 2), wanted, strict=True):
            same(found, want)


@settings(max_examples=25)
@given(COUNTS, PARTS, st.sampled_from(LAYOUTS))
def test_parts_may_have_no_rows(n: int, parts: int, layout: lw.Layout) -> None:
    one, many = (bodies(n, layout, Mesh("cpu", parts=p)) for p in (1, parts))
    same(pull(many, many, softening2=0.1), pull(one, one, softening2=0.1))
    for found, wanted in zip(
        push(many, np.ones((n, 3), "f4"), dt=0.5), push(one, np.ones((n, 3), "f4"), dt=0.5), strict=True
    ):
        same(found, wanted)
    for name, values in many.numpy().items():
        same(values, one.numpy()[name])


def test_one_device_and_a_mesh_agree() -> None:
    plain, mesh = bodies(301, lw.SoA(), "cpu"), bodies(301, lw.SoA(), Mesh("cpu", parts=3))
    plan = lw.Plan(reciprocity="off")
    same(pull(mesh, mesh, softening2=1e-3), pull(plain, plain, softening2=1e-3, plan=plan))
    same(others(mesh, mesh)[1], others(plain, plain)[1])
    for found, wanted in zip(push(mesh, (1, 2, 3), dt=0.1), push(plain, (1, 2, 3), dt=0.1), strict=True):
        same(found, wanted)
    d = plain.position[None].astype("f8") - plain.position[:, None]
    exact = np.einsum("ijk,j,ij->ik", d, plain.mass.astype("f8"), ((d**2).sum(-1) + 1e-3) ** -1.5)
    np.testing.assert_allclose(
        host(pull(mesh, mesh, softening2=1e-3)), exact, rtol=2e-4, atol=2e-3 * np.abs(exact).max()
    )


SEARCHES = [
    lw.Neighbors(radius=0.7), lw.Nearest(k=5), lw.Nearest(k=9, radius=0.5), lw.StaticGrid(radius=0.6), lw.DynamicGrid(radius=0.5),
    lw.StaticGrid(radius=0.6, side=0.5), lw.DynamicGrid(k=4), lw.AllPairs(radius=0.8), lw.Neighbors(radius=0.5, world=lw.Periodic((4.0, 4.0, 4.0))),
]  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("n", [300, pytest.param(1500, marks=pytest.mark.slow)])
def test_searches_have_the_bits_of_one_part(device: str, search: lw.AllPairs, n: int) -> None:
    kernel = near.using(search)

    def left(mesh: Mesh) -> list[Any]:
        b = bodies(n, lw.SoA(), mesh)
        b.position = np.abs(b.position.numpy()) % 4
        found = list(kernel(b, b))
        bound = kernel.bind(b, b)
        push(b, bound()[0], dt=1e-3)  # who is near may change
        return [host(x) for x in (*found, *bound(), *kernel(b, bodies(60, lw.AoS(), device)))]

    wanted = left(several(device, 1))
    for parts in (2, 5):
        for found, want in zip(left(several(device, parts)), wanted, strict=True):
            same(found, want)


def test_a_plan_and_results_of_the_callers_own() -> None:
    mesh = Mesh("cpu", parts=3)
    b = bodies(50, lw.SoA(), mesh)
    out = pull(b, b, softening2=1.0)
    again = pull(b, b, softening2=2.0, out=out, plan=lw.Plan(accumulate="f64"))
    assert again is out
    same(
        out,
        pull(bodies(50, lw.SoA(), Mesh("cpu", parts=1)), b.to("cpu"), softening2=2.0, plan=lw.Plan(accumulate="f64")),
    )


def test_sources_may_lie_elsewhere() -> None:
    mesh = Mesh("cpu", parts=4)
    targets, sources = bodies(30, lw.AoS(), "cpu"), bodies(17, lw.SoA(), "cpu")
    wanted = pull(targets, sources, softening2=0.5)
    split = targets.to(mesh)
    for source in (sources, sources.to(mesh), sources.to(Mesh("cpu", parts=2))):
        same(pull(split, source, softening2=0.5), wanted)


def test_values_on_a_mesh_compute_part_by_part() -> None:
    mesh = Mesh("cpu", parts=3)
    b = bodies(20, lw.SoA(), mesh)
    x = b.velocity
    plain = np.array(x.numpy())
    assert isinstance(x, SplitArray)
    for found, wanted in (
        (2 * x + 1, 2 * plain + 1),
        (np.sqrt(x * x), np.sqrt(plain * plain)),
        (x - np.array([1.0, 2.0, 3.0]), plain - np.array([1.0, 2.0, 3.0])),
        (x + plain, plain + plain),
        (x > 0, plain > 0),
        (-x, -plain),
    ):
        assert isinstance(found, SplitArray)
        same(found, wanted)
    assert np.asarray(b.mass).dtype == np.float32
    x *= 3
    same(b.velocity, 3 * plain)  # it is a view
    b.velocity = x + 1
    same(b.velocity, 3 * plain + 1)
    same(x[3:7], x.numpy()[3:7])
    assert (x.shape, x.dtype, len(x), x.ndim) == ((20, 3), np.float64, 20, 2)
    with pytest.raises(TypeError):
        np.add.reduce(x)
    with pytest.raises(ArgumentError, match="cannot be broadcast"):
        _ = x + plain[:19]


def test_operands_whose_rows_are_others_are_refused() -> None:
    """A part of three rows does not broadcast against what the whole would not."""
    b = bodies(6, lw.SoA(), Mesh("cpu", parts=2))
    for attempt in (
        lambda: b.mass * np.ones((6, 3)),
        lambda: b.velocity[:3] + b.velocity,
        lambda: np.multiply(b.mass, 2.0, where=np.ones(6, bool)),
        lambda: b.mass * b.velocity,
    ):
        with pytest.raises(ArgumentError):
            attempt()
    one = bodies(3, lw.SoA(), Mesh("cpu", parts=3))
    with pytest.raises(ArgumentError, match="rows of an array on a mesh"):
        _ = one.mass * one.velocity
    same(b.velocity * np.ones(3), b.velocity.numpy())
    same(b.velocity * np.ones((1, 3)), b.velocity.numpy())
    same(b.velocity * np.arange(18.0).reshape(6, 3), b.velocity.numpy() * np.arange(18.0).reshape(6, 3))


def test_arrays_that_are_converted_are_said_to_be_copied() -> None:
    b = bodies(7, lw.SoA(), Mesh("cpu", parts=3))
    own = np.ones((7, 3), "f4")
    assert not push.bind(b, own, dt=0.1).copied
    assert push.bind(b, own.astype("f8"), dt=0.1).copied == ("force",)
    with pytest.raises(ArgumentError, match="bound to a copy of 'force'"):
        lw.steps([push.bind(b, own.astype("f8"), dt=0.1)])


def test_arrays_of_values_alone() -> None:
    b = bodies(23, lw.SoA(), Mesh("cpu", parts=4))
    doubled = twice(1.0 * b.velocity)
    assert isinstance(doubled, SplitArray)
    same(doubled, twice(b.velocity.numpy()))


def test_rows_are_indexed_assigned_and_converted_as_on_one_device() -> None:
    plain, mesh = bodies(29, lw.AoSoA(8), "cpu"), bodies(29, lw.AoSoA(8), Mesh("cpu", parts=4))
    rng = np.random.default_rng(0)
    keys = [slice(3, 20), slice(1, 29, 5), slice(0, 0), slice(28, 29), rng.permutation(29)[:9], rng.random(29) < 0.4]
    for key in keys:
        same(mesh[key].serial, plain[key].serial)
    mesh[4:9] = mesh[14:19].copy()
    plain[4:9] = plain[14:19].copy()
    mesh[7].position.y = 5
    plain[7].position.y = 5
    mesh.mass = np.arange(29)
    plain.mass = np.arange(29)
    for made in (mesh, mesh.copy(), mesh.to("cpu"), mesh.to(Mesh("cpu", parts=2)), mesh.with_layout(lw.SoA())):
        for name, values in plain.numpy().items():
            same(made.numpy()[name], values)
    assert repr(mesh.with_layout(lw.SoA())).count("on a mesh (4 x cpu)")
    copy = mesh.copy()
    copy.mass = 0
    assert mesh.numpy()["mass"].any()
    assert (
        repr(mesh)
        == "<29 Body(position: vec3, velocity: dvec3, mass: f32, serial: i64) as AoSoA(8) on a mesh (4 x cpu), 1,536 bytes>"
    )


def test_masks_and_pickles() -> None:
    plain, mesh = bodies(29, lw.AoS(), "cpu"), bodies(29, lw.AoS(), Mesh("cpu", parts=4))
    same(mesh[mesh.mass > 0.5].serial, plain[plain.mass > 0.5].serial)
    again = pickle.loads(pickle.dumps(mesh))
    assert repr(again) == repr(mesh)
    for name, values in plain.numpy().items():
        same(again.numpy()[name], values)


@lw.elementwise
def weighed(body: Body, scale: lw.f32) -> lw.f32:
    return body.mass * lw.exp(scale * body.position.x)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_reductions_and_gradients_by_a_value(parts: int) -> None:
    """One number for all rows, with the same bits for every number of parts."""
    plain = bodies(1000, lw.SoA(), "cpu")
    mesh = plain.to(Mesh("cpu", parts=parts))
    for reduced in (lw.sum, lw.min, lw.max):
        assert reduced(mesh.mass) == reduced(plain.mass)
        same(reduced(mesh.position), reduced(plain.position))
    assert pull.gradient("softening2")(mesh, mesh, 0.5) == pytest.approx(
        pull.gradient("softening2")(plain, plain, 0.5), rel=1e-4
    )
    found = weighed.gradient(("mass", "scale"))(mesh, 0.3)
    wanted = weighed.gradient(("mass", "scale"))(plain, 0.3)
    same(found[0], wanted[0])
    assert found[1] == pytest.approx(wanted[1], rel=1e-5)
    one = plain.to(Mesh("cpu", parts=1))
    assert found[1] == weighed.gradient("scale")(one, 0.3)
    assert pull.gradient("softening2")(mesh, mesh, 0.5) == pull.gradient("softening2")(one, one, 0.5)
    with pytest.raises(ArgumentError, match="an array without elements has no smallest"):
        lw.min(mesh.mass[:0])


def test_gradients() -> None:
    plain, mesh = bodies(29, lw.SoA(), "cpu"), bodies(29, lw.SoA(), Mesh("cpu", parts=4))
    for wrt in ("position", "target.position", "source.mass"):
        gradient = pull.gradient(wrt)
        found, wanted = gradient(mesh, mesh, softening2=0.5), gradient(plain, plain, softening2=0.5)
        np.testing.assert_allclose(host(found), host(wanted), rtol=1e-5, atol=1e-5 * np.abs(host(wanted)).max())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("n", [1, 8, 40, 301])
def test_sums_have_the_bits_of_one_device(n: int, layout: lw.Layout) -> None:
    """Those of vectors depend on how the numbers lie in memory, as NumPy adds them."""
    plain = bodies(n, layout, "cpu")
    for parts in (1, 3, 8, 40):
        mesh = plain.to(Mesh("cpu", parts=parts))
        for values, wanted in ((mesh.velocity, plain.velocity), (mesh.velocity * 3, plain.velocity * 3)):
            same(lw.sum(values), lw.sum(wanted))


@pytest.mark.parametrize("wrt", ["target.position", "source.mass", "softening2"])
def test_gradients_over_two_arrays(wrt: str) -> None:
    """Targets and sources need not be one array, and the sources may lie on one device."""
    gradient = pull.gradient(wrt)
    wanted = gradient(bodies(29, lw.SoA(), "cpu"), bodies(17, lw.AoS(), "cpu"), 0.5)
    found = [
        host(gradient(bodies(29, lw.SoA(), Mesh("cpu", parts=n)), bodies(17, lw.AoS(), place), 0.5))
        for n in (1, 4)
        for place in (Mesh("cpu", parts=n), *(["cpu"] if wrt != "source.mass" else []))
    ]
    for one in found:
        same(one, found[0])
        np.testing.assert_allclose(one, host(wanted), rtol=1e-5, atol=1e-5 * np.abs(host(wanted)).max())


@lw.elementwise
def weighted(body: Body, mass: lw.f32, by: lw.vec3, count: lw.i32) -> lw.i32:
    body.mass = 2 * mass + by.y
    return count + 1


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_values_of_parts_with_one_row_and_with_none(n: int, layout: lw.Layout) -> None:
    """Lists, and a field of the records that change, are taken as from all rows."""
    left: list[Any] = []
    for device in ("cpu", several("cpu", 1), several("cpu", 3), several("cpu", 8)):
        b = bodies(n, layout, device)
        counts = weighted(b, b.mass, [[0.0, float(i), 1.0] for i in range(n)], list(range(n)))
        left.append((host(counts), b.numpy()["mass"]))
    for counts, masses in left[1:]:
        same(counts, left[0][0])
        same(masses, left[0][1])


@pytest.mark.parametrize("bits", [0, 256, 512])
def test_slices_of_a_mesh_run_where_they_lie(bits: int) -> None:
    """The bits are those of an array that lies so: a view with a step has other loads, and LLVM may
    contract other products there.
    """
    mesh = Mesh("cpu", parts=4)
    plain, b = bodies(31, lw.SoA(), "cpu"), bodies(31, lw.SoA(), mesh)
    for key in (slice(2, 25), slice(0, 31, 3), slice(5, 9)):
        push(b[key], (1, 0, 0), dt=0.5)
        push(plain[key], (1, 0, 0), dt=0.5)
        few = plain[key].copy()
        same(
            pull(b[key], b[key], softening2=1.0, plan=lw.Plan(vector_bits=bits)),
            pull(few, few, softening2=1.0, plan=lw.Plan(reciprocity="off", vector_bits=bits)),
        )
    same(b.position, plain.position)


MESH = Mesh("cpu", parts=3)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: pull.tune(bodies(9, lw.SoA(), MESH), bodies(9, lw.SoA(), MESH), softening2=1.0),
        "pull: some arrays lie on a mesh",
    ),
    (
        lambda: push.sum(bodies(9, lw.SoA(), MESH), (1, 2, 3), 1.0),
        "push: 'body': this array of Body lies on a mesh.*; lw.sum takes the",
    ),
    (lambda: numbered(bodies(9, lw.SoA(), MESH)), "numbered asks for the index of body, which parts count anew"),
    (lambda: looked_up(bodies(9, lw.SoA(), MESH), np.ones(9, "f4")), "looked_up has arrays with indices"),
    (lambda: filled(a=bodies(9, lw.SoA(), MESH).mass, grid=9), "filled: some arrays lie on a mesh"),
    (
        lambda: pull.bind(bodies(9, lw.SoA(), MESH), bodies(9, lw.SoA(), MESH), softening2=lw.by_step(float)),
        r"pull: lw.by_step\(\.\.\.\) is for arrays on one device",
    ),
    (
        lambda: pull(bodies(9, lw.SoA(), "cpu"), bodies(9, lw.SoA(), MESH), softening2=1.0),
        "'target' lies on one device, and other arrays",
    ),
    (
        lambda: pull(bodies(9, lw.SoA(), MESH), bodies(9, lw.SoA(), MESH), softening2=1.0, out=np.zeros((9, 3), "f4")),
        r"out must lie on the mesh of the call \(3 x cpu\), with 3, 3, 3 rows",
    ),
    (lambda: (lambda b: pull(b[:5], b, softening2=1.0))(bodies(9, lw.SoA(), MESH)), "are parts of one array on a mesh"),
    (
        lambda: push(bodies(9, lw.SoA(), MESH), np.ones((8, 3), "f4"), dt=1.0),
        "differ in length: force has 8, and those on the mesh have 9",
    ),
    (
        lambda: push(bodies(9, lw.SoA(), MESH), bodies(9, lw.SoA(), MESH)[1:].position, dt=1.0),
        "the parts of 'body' have 3, 3, 3 rows, and those of 'force' 2, 3, 3",
    ),
    (
        lambda: bodies(9, lw.SoA(), MESH).append(bodies(9, lw.SoA(), MESH)),
        "changes the length of an array of Body, and its rows lie on a mesh",
    ),
    (lambda: Body.zeros(9, device=MESH, host_layout=lw.SoA()), r"on a mesh \(3 x cpu\) has no side on the host"),
    (
        lambda: lw.nearest(bodies(9, lw.SoA(), MESH).position, k=2),
        r"nearest: .*an array on one device is wanted, found one on a mesh",
    ),
    (lambda: lw.sum(bodies(9, lw.SoA(), MESH)), "a reduction takes .*, found an array of Body: name a field of it, or"),
    (
        lambda: Body.array(mass=bodies(9, lw.SoA(), MESH).mass, device="cpu"),
        r"Body.mass: an array on one device is wanted",
    ),
    (lambda: Mesh("cpu", parts=0), "an integer from 1 to 1,024, found 0"),
    (lambda: Mesh("cpu*0"), "'cpu\\*0': a mesh has 1 to 1,024 parts"),
    (lambda: bodies(9, lw.SoA(), "cpu*1025"), "'cpu\\*1025': a mesh has 1 to 1,024 parts"),
    (lambda: Mesh(["cpu", "cpu"], parts=2), "parts= divides one device, found 2"),
    (lambda: Mesh([]), "1 to 1,024 parts, found 0"),
    (lambda: Mesh("cuda:3-1"), "from the lower number to the higher"),
    (lambda: Mesh("python", parts=0), "found 0"),
]


@pytest.mark.parametrize(("attempt", "text"), REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_what_a_mesh_does_not_do_is_refused_by_name(attempt: Callable[[], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        attempt()


@lw.elementwise
def heavier(body: Body, mass: lw.f32):
    body.mass += mass


OTHERS = [Mesh("python", parts=3), Mesh("cpu", parts=2), Mesh("cpu", parts=7)]
BESIDE: dict[str, Callable[[Any, Any], Any]] = {
    "called": lambda b, other: heavier(b, other.mass),
    "bound": lambda b, other: heavier.bind(b, other.mass),
    "in a loop": lambda b, other: lw.steps([heavier.bind(b, other.mass)]),
    "vectors": lambda b, other: push(b, 1 * other.position, dt=1.0),
}


@pytest.mark.parametrize("other", OTHERS, ids=str)
@pytest.mark.parametrize("how", BESIDE)
def test_arrays_of_two_meshes_are_refused_with_both_named(how: str, other: Mesh) -> None:
    """Else a bound call would have a copy, which does not follow what is written later."""
    one, more = bodies(9, lw.SoA(), MESH), bodies(9, lw.SoA(), other)
    text = f"lies on another mesh ({other}), and other arrays of the call on a mesh ({MESH})"
    with pytest.raises(ArgumentError, match=re.escape(text)):
        BESIDE[how](one, more)


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("on_mesh", [(True, True), (True, False), (False, True)], ids=str)
def test_slices_are_of_arrays_in_one_memory(on_mesh: tuple[bool, bool], device: str) -> None:
    sliced = lw.in_slices(pull, device=device, group=4)
    target, source = (bodies(9, lw.SoA(), MESH if there else "cpu") for there in on_mesh)
    for attempt in (sliced, sliced.slices, sliced.explain):
        arguments = {"softening2": 1.0} if attempt is sliced else {}
        with pytest.raises(ArgumentError, match=r"pull in slices: .* lies on a mesh \(3 x cpu\)"):
            attempt(target, source, **arguments)


def test_devices_that_are_not_there() -> None:
    with pytest.raises(DeviceError, match="tpu"):
        Mesh(["cpu", "tpu"])


@settings(max_examples=50)
@given(st.integers(0, 1000), st.integers(1, 64))
def test_rows_are_divided_evenly_and_completely(count: int, parts: int) -> None:
    mesh = Mesh("cpu", parts=parts)
    assert mesh == Mesh(f"cpu*{parts}")
    rows = mesh.rows(count)
    assert [n for piece in rows for n in piece] == list(range(count))
    assert max(map(len, rows)) - min(map(len, rows)) <= 1


@pytest.mark.parametrize("way", ["scratch", "ordered", "grouped"])
def test_pairs_both_ways_are_for_gpus(way: Any) -> None:
    """What is advised is not refused."""
    several = bodies(64, lw.SoA(), Mesh("cpu", parts=2))
    with pytest.raises(ArgumentError, match=f"'{way}'.* is for GPUs: .*leave reciprocity out"):
        pull.bind(several, several, softening2=1e-3, plan=lw.Plan(reciprocity=way))
    pull.bind(several, several, softening2=1e-3, plan=lw.Plan())


@lw.function
def inverse(x: lw.f32) -> lw.f32:
    return lw.rsqrt(x + 0.1)


@lw.elementwise
def unit(body: Body) -> lw.vec3:
    body.mass = inverse(body.mass)
    return body.position * inverse(lw.dot(body.position, body.position))


@lw.pairwise
def strongest(target: Body, source: Body) -> tuple[lw.Max[lw.f32], lw.LogSumExp[lw.f32], lw.ArgMin[lw.f32]]:
    d = source.position - target.position
    pulls = source.mass * inverse(lw.dot(d, d))
    return pulls, pulls, pulls


@lw.pairwise
def potential(target: Body, source: Body) -> lw.f32:
    d = source.position - target.position
    return source.mass * inverse(lw.dot(d, d))


@lw.stencil(lw.D2Q5)
def rooted(t: lw.Field[lw.f32]) -> lw.f32:
    return t[0] + inverse(1.0 + t[1] * t[1] + t[3]) - 0.1 * t[2]


@lw.sitewise(lw.D2Q9)
def relaxed(f: lw.populations):
    size = lw.f32(0)
    for q in lw.D2Q9:
        size += f[q] * f[q]
    for q in lw.D2Q9:
        f[q] += q.weight * inverse(size) - 0.5 * f[q]


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS()], ids=str)
@pytest.mark.parametrize("n", [9, 37, 100])
def test_estimates_of_roots_do_not_depend_on_where_rows_are_cut(n: int, layout: lw.Layout) -> None:
    """The last rows of a part have no whole register, and the same bits: also those of one device."""
    side_by_side = lw.Plan(across=256)
    left: list[list[Any]] = []
    for device in ("cpu", *(several("cpu", parts) for parts in (1, 2, 5, 13))):
        b = bodies(n, layout, device)
        left.append([*strongest(b, b), potential(b, b, plan=side_by_side), unit(b), *b.numpy().values()])
    for found in left[1:]:
        for one, other in zip(found, left[0], strict=True):
            same(one, other)
    plain = bodies(n, layout, "cpu")
    same(unit(plain[: n // 2]), host(left[0][4])[: n // 2])


@pytest.mark.parametrize("streaming", ["in-place", "pull", "push"])
def test_estimates_of_roots_do_not_depend_on_where_a_domain_is_cut(streaming: str) -> None:
    rng, left = np.random.default_rng(3), list[list[Any]]()
    start, populations = rng.random((33, 101), "f4"), rng.random((9, 33, 101), "f4")
    for device in ("cpu", *(several("cpu", parts) for parts in (1, 3, 4))):
        field = rooted.sites(start.shape, t=start, edges={"x": "slip"}, device=device)
        rooted.run(field, 3)
        sites = relaxed.sites(start.shape, streaming=streaming, device=device)
        relaxed.set_populations(sites, populations)
        relaxed.run(sites, 3)
        left.append([rooted.field(field, "t"), relaxed.populations(sites)])
    for found in left[1:]:
        for one, other in zip(found, left[0], strict=True):
            same(one, other)


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_errors_name_elements_as_the_caller_counts(parts: int) -> None:
    kernels = {
        "element 17 is .nan": near.using(lw.Neighbors(radius=0.5)),
        "element 17 at .nan|element 17 is": near.using(
            lw.StaticGrid(radius=0.5, world=lw.Bounded((-9.0, -9.0, -9.0), (9.0, 9.0, 9.0)))
        ),
    }
    for text, kernel in kernels.items():
        for sources in (bodies(20, lw.SoA(), "cpu"), None):
            b = bodies(20, lw.SoA(), several("cpu", parts))
            b[17].position.x = np.nan
            with pytest.raises(ArgumentError, match=text):
                kernel(b, b if sources is None else sources)
    far = bodies(20, lw.SoA(), several("cpu", parts))
    far[13].position.y = 50.0
    bound = list(kernels.values())[1].bind
    with pytest.raises(ArgumentError, match="element 13 at"):
        bound(far, bodies(20, lw.SoA(), "cpu"))


KEYS: list[Any] = [
    0, -1, slice(3, 11), slice(None, None, -3), ..., (slice(2, 9), 1), [1, 19, 7], np.arange(20) % 3 == 0, slice(5, 5),
]  # fmt: skip


@pytest.mark.parametrize("layout", [lw.SoA(), lw.AoS()], ids=str)
@pytest.mark.parametrize("parts", [1, 3, 7])
def test_rows_are_assigned_as_in_numpy(layout: lw.Layout, parts: int) -> None:
    b, values = bodies(20, layout, several("cpu", parts)), bodies(20, layout, "cpu").position.copy()
    for n, key in enumerate(KEYS):
        b.position[key] = values[key] = np.float32(n) + np.arange(3, dtype="f4")[1 if isinstance(key, tuple) else ...]
        same(b.position, values)
    b.position[2:12] += 1
    values[2:12] += 1
    same(b.position, values)
    with pytest.raises(IndexError):
        b.position[20] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        bodies(20, lw.AoSoA(8), several("cpu", parts)).position[0] = 1.0


def test_an_array_is_true_where_it_would_be_in_numpy() -> None:
    """A comparison of arrays is no answer: its truth would be that of its length."""
    b, one = bodies(9, lw.SoA(), MESH), bodies(1, lw.SoA(), MESH)
    for values in (b.mass, b.mass == b.mass.numpy(), b.position > 0, bodies(0, lw.SoA(), MESH).mass):
        with pytest.raises(ValueError, match="is neither true nor false"):
            assert values
    assert one.mass
    assert not one.mass == 1 + one.mass


def test_a_file_is_loaded_to_a_mesh(tmp_path: Path) -> None:
    b = bodies(9, lw.AoS(), "cpu")
    lw.save(tmp_path / "a.h5", b)
    lw.save(tmp_path / "b.h5", bodies=b, values=np.arange(3))
    for place in (MESH, "cpu*3"):
        loaded = lw.load(tmp_path / "a.h5", Body, device=place)
        assert [len(part) for part in loaded.mass.parts] == [3, 3, 3]
        assert str(loaded.layout) == "AoS"
        same(loaded.position, b.position)
        with pytest.raises(InputError, match=r"'values' holds no records, and cannot lie on a mesh \(3 x cpu\)"):
            lw.load(tmp_path / "b.h5", device=place)


def test_values_on_a_mesh_are_saved_as_those_of_one_device(tmp_path: Path) -> None:
    one, split = bodies(11, lw.SoA(), "cpu"), bodies(11, lw.SoA(), several("cpu", 3))
    lw.save(tmp_path / "a.h5", split.position)
    same(lw.load(tmp_path / "a.h5"), one.position)
    lw.save(tmp_path / "b.h5", bodies=split, twice=2 * split.mass, step=np.array([7]))
    loaded = lw.load(tmp_path / "b.h5")
    same(loaded["twice"], 2 * one.mass)
    same(loaded["bodies"].position, one.position)


def test_what_cannot_be_saved_is_refused_by_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="an array of numbers is needed") as caught:
        lw.save(tmp_path / "a.h5", names=np.array(["a", "b"]))
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_lists_that_live_several_steps_are_for_one_device() -> None:
    b = bodies(20, lw.SoA(), several("cpu", 2))
    with pytest.raises(
        ArgumentError, match=r"on one device, whose lists live several steps; lw.StaticGrid .* on a mesh"
    ):
        near.using(lw.NeighborLists(radius=0.5, skin=0.2))(b, b)
