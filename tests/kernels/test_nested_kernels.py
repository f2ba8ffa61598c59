"""Kernels over records within records: the generated code, names apart, and the bits of those over fields
spelled out.
"""

from __future__ import annotations

from dataclasses import fields
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.emit.cuda import emit_cuda
from lanewise.launch.executable import switches_of
from lanewise.planning.plan import Plan
from lanewise.support.errors import LanewiseError
from tests.corpus import CASES, LAYOUTS, Case
from tests.emit.bodies import cuda_bodies, llvm_bodies
from tests.harness import Input, program, run_kernels, run_public, stages
from tests.nested_corpus import cases, modules, spelled_out

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]
QUICK = ("SoA", "AoSoA")
NAMES = [c.name for c in CASES if c.records]
TRIED: dict[str, tuple[Any, ...]] = {
    "cpu": (Plan(), Plan(targets=4, tile=64), Plan(fission=True), Plan(branches="apart"), Plan(hoist=True)),
    "cuda": (
        Plan(), Plan(tile=64, block=64, unroll=4), Plan(tile=0), Plan(tile=64, prefetch="registers"), Plan(parts=3, slices=2),
        Plan(targets=4, hoist=True, uniforms="global"), Plan(fission=True), Plan(branches="apart"), Plan(reciprocity="scratch"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Case], dict[str, Case]]:
    """The cases of the corpus, nested and flat."""
    made: tuple[ModuleType, ModuleType] = modules(tmp_path_factory.mktemp("nested"))
    nested, flat = ({c.name: c for c in cases(m)} for m in made)
    return nested, flat


def code(case: Case, layout: lw.Layout, plan: Plan, kind: str) -> str:
    """The generated text, or why there is none."""
    try:
        made = program(case, layout, plan, kind)
    except LanewiseError as error:
        return str(error)
    return (llvm_bodies if kind == "cpu" else cuda_bodies)(made).replace("nested_kernels", "flat_kernels")


def plans(kind: str, *, every: bool) -> tuple[Plan, ...]:
    if not every:
        return TRIED[kind]
    found = list(TRIED[kind])
    for f in fields(Plan):
        declared = f.metadata["decision"]
        values = {*declared.cuda, *declared.cpu, *declared.elementwise, *declared.elementwise_cpu}
        found += [Plan(**{f.name: v}) for v in sorted(values, key=repr)]
    return tuple(found)


def assert_same_code(a: Case, b: Case, *, every: bool) -> int:
    compared = 0
    for kind in ("cpu", "cuda"):
        for layout in ("SoAoAS", "AoSoA") if every else LAYOUTS:
            for plan in plans(kind, every=every):
                assert spelled_out(code(a, LAYOUTS[layout], plan, kind)) == code(b, LAYOUTS[layout], plan, kind)
                compared += 1
    return compared


@pytest.mark.parametrize("name", ["gravity_potential", "kick_drift", "grow"])
def test_the_code_is_that_of_the_fields_spelled_out(both: Any, name: str) -> None:
    assert assert_same_code(both[0][name], both[1][name], every=False) == 70


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_code_is_that_of_the_fields_spelled_out_for_every_decision(both: Any, name: str) -> None:
    assert assert_same_code(both[0][name], both[1][name], every=True) > 200


def test_the_text_of_a_kernel_names_the_record_within(both: Any) -> None:
    text = code(both[0]["gravity"], lw.SoA(), Plan(), "cuda")
    assert "source_inner_core_position_x" in text


@pytest.mark.quick(*(f"{n}-cpu" for n in QUICK))
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_have_the_bits_of_the_fields_spelled_out(both: Any, layout: str, device: str) -> None:
    for name in NAMES:
        found, wanted = (run_public(Input(c[name], 37, None, seed=3), LAYOUTS[layout], device) for c in both)
        assert [x.tobytes() for x in found] == [x.tobytes() for x in wanted], name


@pytest.mark.parametrize("layout", ["AoS", "AoSoA"])
def test_every_stage_means_what_the_interpreter_says(both: Any, layout: str) -> None:
    for name in ("gravity_potential", "ranked_distance", "kick_drift"):
        given, flat = (Input(c[name], 9, None, seed=5) for c in both)
        last = stages(given.case, LAYOUTS[layout], Plan(targets=2) if given.case.pairwise else Plan(), "cpu")[-1][1]
        found = run_kernels(last, given, LAYOUTS[layout])
        wanted = run_public(flat, LAYOUTS[layout], "cpu")
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layout", ["SoA", "AoSoA"])
def test_the_text_compiles_for_cuda(both: Any, layout: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from lanewise.runtime.nvrtc import compile_cubin

    for name in ("gravity", "grow"):
        p = program(both[0][name], LAYOUTS[layout], Plan(), "cuda")
        for kernel in p.kernels:
            made = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90", switches_of(p.plan))
            assert "warning" not in made.log.lower(), made.log


# ------------------------------------------------------------ every pattern


class Shape(lw.Record):
    radius: lw.f32
    centre: lw.vec3


class Body(lw.Record):
    shape: Shape
    before: Shape
    mass: lw.f32


class Flat(lw.Record):
    shape_radius: lw.f32
    shape_centre: lw.vec3
    before_radius: lw.f32
    before_centre: lw.vec3
    mass: lw.f32


COUNT = 150


def arrays(layout: lw.Layout, device: str, seed: int = 0, **options: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    given = {
        "shape.radius": rng.random(COUNT, np.float32) * np.float32(0.2),
        "shape.centre": rng.random((COUNT, 3), np.float32),
        "before.centre": rng.random((COUNT, 3), np.float32),
        "mass": rng.random(COUNT, np.float32),
    }
    flat = {n.replace(".", "_"): v for n, v in given.items()}
    nested: Any = Body.array(None, layout=layout, device=device, **given, **options)
    return nested, Flat.array(None, layout=layout, device=device, **flat, **options)


def host(x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(map(host, x))
    return (x.get() if hasattr(x, "get") else np.asarray(x)).tobytes()


@lw.function
def overlap(a: Shape, b: Shape, d):
    return lw.max(a.radius + b.radius - lw.length(d), 0.0)


@lw.function
def overlap_flat(a, b, d):
    return lw.max(a + b - lw.length(d), 0.0)


@lw.pairwise
def press(target: Body, source: Body) -> tuple[lw.vec3, lw.Max[lw.f32]]:
    d = source.shape.centre - target.shape.centre
    near = 0.0 if lw.same(target, source) else overlap(target.shape, source.shape, d)
    return near * source.mass * d, near


@lw.pairwise
def press_flat(target: Flat, source: Flat) -> tuple[lw.vec3, lw.Max[lw.f32]]:
    d = source.shape_centre - target.shape_centre
    near = 0.0 if lw.same(target, source) else overlap_flat(target.shape_radius, source.shape_radius, d)
    return near * source.mass * d, near


@lw.pairwise
def pull(target: Body, source: Body, softening2: lw.f32) -> lw.vec3:
    d = source.shape.centre - target.shape.centre
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.pairwise
def pull_flat(target: Flat, source: Flat, softening2: lw.f32) -> lw.vec3:
    d = source.shape_centre - target.shape_centre
    return source.mass * lw.rsqrt(lw.dot(d, d) + softening2) ** 3 * d


@lw.elementwise
def step(body: Body, dt: lw.f32) -> lw.f32:
    body.before = body.shape
    body.shape.radius += dt * body.mass
    body.shape.centre = body.shape.centre * (1.0 - dt) + body.before.centre.zyx
    return lw.length(body.before.centre - body.shape.centre)


@lw.elementwise
def step_flat(body: Flat, dt: lw.f32) -> lw.f32:
    body.before_radius = body.shape_radius
    body.before_centre = body.shape_centre
    body.shape_radius += dt * body.mass
    body.shape_centre = body.shape_centre * (1.0 - dt) + body.before_centre.zyx
    return lw.length(body.before_centre - body.shape_centre)


@lw.elementwise
def energy(body: Body, k: lw.f32) -> lw.f32:
    return k * body.shape.radius**2 * lw.dot(body.shape.centre, body.before.centre)


@lw.elementwise
def energy_flat(body: Flat, k: lw.f32) -> lw.f32:
    return k * body.shape_radius**2 * lw.dot(body.shape_centre, body.before_centre)


@lw.segmentwise
def moment(body: Body) -> lw.vec3:
    return body.mass * body.shape.radius * body.shape.centre


@lw.segmentwise
def moment_flat(body: Flat) -> lw.vec3:
    return body.mass * body.shape_radius * body.shape_centre


@lw.elementwise
def borrow(body: Body, other: Body):
    body.before = body.shape = other.shape


@lw.elementwise
def borrow_flat(body: Flat, other: Flat):
    body.before_radius = body.shape_radius = other.shape_radius
    body.before_centre = body.shape_centre = other.shape_centre


@lw.elementwise
def numbered(body: Body, seed: lw.u32) -> lw.f32:
    return lw.random(seed, lw.index_of(body)) * body.shape.radius


@lw.elementwise
def numbered_flat(body: Flat, seed: lw.u32) -> lw.f32:
    return lw.random(seed, lw.index_of(body)) * body.shape_radius


def same_fields(nested: Any, flat: Any) -> None:
    here, there = nested.numpy(), flat.numpy()
    for name, values in here.items():
        assert values.tobytes() == there[name.replace(".", "_")].tobytes(), name


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", [pytest.param(n, marks=[pytest.mark.slow] * (n not in QUICK)) for n in LAYOUTS])
def test_patterns(layout: str, device: str) -> None:
    a, b = arrays(LAYOUTS[layout], device)
    assert host(press(a, a)) == host(press_flat(b, b))
    assert host(press(a[:40], a)) == host(press_flat(b[:40], b))
    assert host(numbered(a, 7)) == host(numbered_flat(b, 7))
    for _ in range(3):  # the second call goes by the first one
        assert host(step(a, 0.5)) == host(step_flat(b, 0.5))
    borrow(a, a.copy())
    borrow_flat(b, b.copy())
    same_fields(a, b)
    assert float(energy.sum(a, 2.0)) == float(energy_flat.sum(b, 2.0))
    assert float(energy.max(a, 2.0)) == float(energy_flat.max(b, 2.0))
    lists = (lw.ragged(x, counts=[100, 0, COUNT - 100]) for x in (a, b))
    assert host(moment(next(lists))) == host(moment_flat(next(lists)))
    if layout == "SoA":  # contiguous fields, which take results
        energy(a, 1.0, out=a.shape.radius)
        energy_flat(b, 1.0, out=b.shape_radius)
        same_fields(a, b)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("search", ["DynamicGrid", "StaticGrid", "CellArray", "NeighborLists", "Nearest"])
def test_searches(search: str, device: str) -> None:
    a, b = arrays(lw.SoA(), device)
    more = {"skin": 0.05} if search == "NeighborLists" else {}
    asked = {"k": 5} if search == "Nearest" else {"radius": 0.4}
    made: Any = getattr(lw, search)
    near, near_flat = (made(**asked, position=f"shape{dot}centre", **more) for dot in "._")
    assert host(press.using(search=near)(a, a)) == host(press_flat.using(search=near_flat)(b, b))
    if search != "Nearest":
        np.testing.assert_allclose(
            *(np.frombuffer(host(p(a, a)[0]), "f4") for p in (press, press.using(search=near))), atol=1e-5
        )


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
def test_far_fields(device: str) -> None:
    a, b = arrays(lw.SoA(), device)
    for asked in ({"theta": 0.5, "order": 2},):
        far, flat = (lw.Tree(position=f"shape{dot}centre", leaf=8, **asked) for dot in "._")  # type: ignore[arg-type]
        assert host(pull.using(search=far)(a, a, 0.01)) == host(pull_flat.using(search=flat)(b, b, 0.01))


@pytest.mark.parametrize("device", DEVICES)
def test_gradients(device: str) -> None:
    a, b = arrays(lw.AoS(), device)
    for name in ("shape.centre", "target.shape.centre", "source.shape.centre", "source.mass", "softening2"):
        flat = name.replace("shape.", "shape_")
        cotangent = np.random.default_rng(1).random((COUNT, 3), np.float32)
        given, wanted = pull.gradient(wrt=name), pull_flat.gradient(wrt=flat)
        assert host(given(a, a, 0.01, cotangent=cotangent)) == host(wanted(b, b, 0.01, cotangent=cotangent))
    names = ("shape.radius", "body.before.centre", "k")
    found = energy.gradient(wrt=names)(a, 2.0)
    wanted = energy_flat.gradient(wrt=("shape_radius", "body.before_centre", "k"))(b, 2.0)
    assert [host(x) for x in found] == [host(x) for x in wanted]
    for wrt, text in (
        ("shape", "'shape' is a record; name a field of it: target.shape.radius, target.shape.centre"),
        ("source.shape", "'source.shape' is a record; name a field of it: source.shape.radius, source.shape.centre"),
        ("shape.rad", "'shape.rad' is no field and no parameter"),
    ):
        with pytest.raises(lw.ArgumentError, match=text):
            pull.gradient(wrt=wrt)(a, a, 0.01)


@pytest.mark.parametrize("device", DEVICES)
def test_only_the_fields_that_are_read_are_copied(device: str) -> None:
    a, _ = arrays(lw.SoA(), device, host_layout=lw.AoS())
    a.host.shape.radius, a.host.before.radius = 2, 3
    profile = lw.Profile()
    with profile.span("run"):
        energy(a, 1.0)
        assert set(a.host.shape.radius.tolist()) == {2}
    assert list(profile.summary()["copies"]["to device"]["fields"]) == ["Body.shape.radius"]
    assert profile.summary()["copies"]["to host"]["bytes"] == 0


def test_python_runs_the_same_function() -> None:
    rows = [Body(shape=Shape(radius=0.5, centre=(0.1, 0.2, n / 10)), mass=n) for n in range(3)]
    a = Body.zeros(0)
    a.append(rows)
    wanted = press(a, a)[1]
    near = [max(0 if s is t else press.python(t, s)[1] for s in rows) for t in rows]
    np.testing.assert_allclose(wanted, near, rtol=1e-6)
    stepped = step(a, 0.5)
    np.testing.assert_allclose([step.python(r, 0.5) for r in rows], stepped, rtol=1e-6)
    assert [r.shape.radius for r in rows] == a.shape.radius.tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_layouts_are_chosen_and_explained(device: str) -> None:
    a, _ = arrays(lw.AoS(), device)
    report = str(energy.compile(a, 1.0).explain())
    assert "shape.radius" in report
    assert "body.shape.centre" in report
    advice = str(lw.choose_layout(Body, [press]))
    assert "reads shape.radius shape.centre.xyz mass" in advice
    grouped = a.with_layout(
        lw.SoAoAS((("shape.centre", "mass"), ("shape.radius",), ("before.centre", "before.radius")))
    )
    assert host(energy(grouped, 1.0)) == host(energy(a, 1.0))
    apart = lw.SoAoAS((("shape.centre.x", "shape.radius"), ("shape.centre.y", "shape.centre.z", "mass")))
    assert host(energy(a.with_layout(apart), 1.0)) == host(energy(a, 1.0))
    names = [b.name for b in apart.arrange(Body.__record__.leaves).buffers]
    assert names[:2] == ["shape.centre.x_shape.radius", "shape.centre.yz_mass"]
    automatic = Body.array(None, layout="auto", device=device, **a.numpy())
    assert host(energy(automatic, 1.0)) == host(energy(a, 1.0))


def test_arrays_on_a_mesh() -> None:
    a, b = arrays(lw.SoA(), "cpu")
    split = a.to("cpu*2")
    assert host(press(split, split)[0].numpy()) == host(press(a, a)[0]) or np.allclose(
        press(split, split)[0].numpy(), press(a, a)[0], atol=1e-5
    )
    step(split, 0.5)
    step_flat(b, 0.5)
    same_fields(split, b)
    split.shape.radius = 3
    assert set(split.to("cpu").shape.radius.tolist()) == {3}
    assert split.shape[4].radius == 3
    with pytest.raises(lw.ArgumentError, match=r"\.shape\.copy\(\): the records lie on a mesh"):
        split.shape.copy()


def test_what_kernels_do_not_take() -> None:
    @lw.elementwise
    def area(shape: Shape) -> lw.f32:
        return shape.radius

    a, _ = arrays(lw.SoA(), "cpu")
    with pytest.raises(
        lw.ArgumentError,
        match=r"'shape' must be an array of Shape, found <\.shape: Shape of .*which lies in that array",
    ):
        area(a.shape)
    assert host(area(a.shape.copy())) == host(np.array(a.shape.radius))
