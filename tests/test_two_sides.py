"""Arrays with two sides: what is copied when, and what is not; every way in which one side is read or changed."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import lanewise as lw
from lanewise.analysis.access import field_accesses
from lanewise.language.record import Record
from lanewise.launch.support import uses_of
from lanewise.profiling import Profile
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import places_of
from lanewise.records.two_sides import bits_of
from lanewise.runtime.memory import on
from lanewise.sims import gravity
from lanewise.support.errors import ArgumentError, RecordError
from tests.corpus import CASES, Case
from tests.harness import reference_kernel
from tests.runtime.stepper import make_stepper
from tests.test_array_views import LAYOUTS, host

COUNT = 20
BODY: Any = gravity.Body


class Grain(lw.Record):
    position: lw.vec3
    velocity: lw.vec3
    mass: lw.f32
    serial: lw.i64
    alive: lw.bool


NAMES = ("position", "velocity", "mass", "serial", "alive")
KIND = np.dtype([("position", "f4", 3), ("velocity", "f4", 3), ("mass", "f4"), ("serial", "i8"), ("alive", "?")])


@lw.elementwise
def drift(grain: Grain, dt: lw.f32):
    grain.position += dt * grain.velocity


@lw.elementwise
def fatten(grain: Grain, more: lw.f32):
    grain.mass += more


@lw.elementwise
def weight(grain: Grain) -> lw.f32:
    return 2 * grain.mass


@lw.pairwise
def heavier(target: Grain, source: Grain) -> lw.f32:
    return source.mass if source.mass > target.mass else lw.f32(0)


@lw.pairwise(search=lw.Neighbors(radius=1.5))
def around(target: Grain, source: Grain) -> lw.f32:
    return source.mass


def rows(n: int, first: int = 0) -> np.ndarray:
    made = np.zeros(n, KIND)
    made["serial"] = np.arange(first, first + n)
    made["mass"] = made["serial"] % 7
    made["position"] = made["serial"][:, None] % [2, 3, 5]
    made["velocity"] = made["serial"][:, None] % [3, 1, 4]
    made["alive"] = made["serial"] % 2 == 0
    return made


def array_of(rows: np.ndarray, device: str = "cpu", **options: Any) -> RecordArray:
    array = Grain.zeros(len(rows), device=device, **options)
    for name in NAMES:
        setattr(array, name, rows[name])
    return array


@pytest.fixture(params=["cpu", "python", pytest.param("cuda", marks=pytest.mark.cuda)])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


def two(device: str = "cpu", n: int = COUNT) -> RecordArray:
    return array_of(rows(n), device, layout=lw.AoS(), host_layout=lw.SoA())


class Counted:
    """The copies that were made since it was last asked: {"mass to host": bytes}."""

    def __init__(self) -> None:
        self.profile = Profile()
        self._span = self.profile.span("all")
        self._seen: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> Counted:
        self._span.__enter__()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._span.__exit__(None, None, None)

    def __call__(self) -> dict[str, int]:
        now = {
            f"{field.removeprefix('Grain.')} {direction}": (row["count"], row["bytes"])
            for direction, all_ in self.profile.summary()["copies"].items()
            for field, row in all_["fields"].items()
        }
        new = {n: x[1] - self._seen.get(n, (0, 0))[1] for n, x in now.items() if x != self._seen.get(n)}
        self._seen = now
        return new


SIZE = {"position": 12, "velocity": 12, "mass": 4, "serial": 8, "alive": 1}


def to_host(*names: str, n: int = COUNT) -> dict[str, int]:
    return {f"{name} to host": n * SIZE[name] for name in names}


def to_device(*names: str, n: int = COUNT) -> dict[str, int]:
    return {f"{name} to device": n * SIZE[name] for name in names}


# ------------------------------------------------------------ what is copied


def test_a_field_is_copied_when_it_is_read_after_the_other_side_has_changed(device: str) -> None:
    grains = two(device)
    with Counted() as copied:
        for _ in range(2):
            assert_field(grains.host.mass, rows(COUNT)["mass"])
        assert copied() == to_host("mass")
        grains.mass = np.arange(COUNT)
        assert copied() == {}
        assert_field(grains.host.mass, np.arange(COUNT))
        assert copied() == to_host("mass")
        grains.host.velocity = np.ones((COUNT, 3))
        assert copied() == {}
        drift(grains, 2)
        assert copied() == to_device("velocity")
        drift(grains, 2)
        assert copied() == {}
        assert_field(grains.host.position, rows(COUNT)["position"] + 4)
        assert copied() == to_host("position")


def assert_field(values: Any, expected: Any) -> None:
    np.testing.assert_array_equal(host(values), expected)


def test_numpy_twice_copies_once(device: str) -> None:
    grains = two(device)
    with Counted() as copied:
        first, second = grains.numpy(), grains.numpy()
        assert copied() == to_host(*NAMES)
        first["mass"][:] = -1  # they belong to the caller
        assert_field(second["mass"], rows(COUNT)["mass"])
        assert_field(grains.numpy()["mass"], rows(COUNT)["mass"])
        fatten(grains, 1)
        assert_field(grains.numpy()["mass"], rows(COUNT)["mass"] + 1)
        assert copied() == to_host("mass")
    assert_field(second["mass"], rows(COUNT)["mass"])


def test_a_time_loop_that_reads_one_field_every_tenth_step(device: str) -> None:
    grains, pictures = two(device), []
    with Counted() as copied:
        for step in range(100):
            drift(grains, 0.5)
            if step % 10 == 9:
                pictures.append(grains.host.position.copy())
        made = copied.profile.summary()["copies"]
    size = COUNT * SIZE["position"]
    assert made == {
        "to host": {"count": 10, "bytes": 10 * size, "fields": {"Grain.position": {"count": 10, "bytes": 10 * size}}},
        "to device": {"count": 0, "bytes": 0, "fields": {}},
    }
    for number, picture in enumerate(pictures):
        assert_field(picture, rows(COUNT)["position"] + 5 * (number + 1) * rows(COUNT)["velocity"])


@pytest.mark.cuda
def test_a_time_loop_of_graphs_that_reads_one_field_every_tenth_step() -> None:
    grains = array_of(rows(COUNT), "cuda", layout=lw.AoS())
    stepper = make_stepper("cuda", [drift.bind(grains, 0.5).launch])
    stepper.run(10)  # it was captured while the array had one side
    with Counted() as copied:
        for tens in range(10):
            assert_field(grains.host.position, rows(COUNT)["position"] + 5 * (tens + 1) * rows(COUNT)["velocity"])
            assert_field(grains.host.mass, rows(COUNT)["mass"])
            stepper.run(10)
        made = copied.profile.summary()["copies"]["to host"]["fields"]
    assert {n: x["count"] for n, x in made.items()} == {"Grain.position": 10, "Grain.mass": 1}
    grains.host.velocity = np.zeros((COUNT, 3))
    before = host(grains.host.position).copy()
    stepper.run(10)
    assert_field(grains.host.position, before)


@pytest.mark.cuda
def test_graphs_of_the_users_are_noticed() -> None:
    import cupy  # pyright: ignore[reportMissingImports]

    with on("cuda"):  # a stream of CuPy belongs to the current device
        check_graphs_of_the_users(cupy)


def check_graphs_of_the_users(cupy: Any) -> None:
    grains = two("cuda")
    launch = drift.bind(grains, 1)
    launch()
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.get_current_stream().synchronize()  # a stream that does not block would not wait for the first step
    with stream:
        stream.begin_capture()
        launch()
        graph = stream.end_capture()
    for number in range(3):
        graph.launch(stream)
        stream.synchronize()
        assert_field(grains.host.position, rows(COUNT)["position"] + (number + 2) * rows(COUNT)["velocity"])
    grains.host.velocity = (0, 0, 0)
    with stream:
        stream.begin_capture()
        with pytest.raises(ArgumentError, match="velocity would be copied to device while a graph is captured"):
            launch()
        stream.end_capture()
    launch()
    assert_field(grains.host.velocity, 0)


@pytest.mark.parametrize("bound", [False, True])
def test_kernels_read_and_write_what_they_use(device: str, bound: bool) -> None:
    grains = two(device)

    def run(kernel: Any, *arguments: Any) -> Any:
        return kernel.bind(*arguments)() if bound else kernel(*arguments)

    with Counted() as copied:
        grains.numpy()
        copied()
        for _ in range(3):
            grains.host.mass = 3
            run(weight, grains)
            assert copied() == to_device("mass")
            run(drift, grains, 1)
            _ = grains.host.position, grains.host.velocity
            assert copied() == to_host("position")
            grains.host.position = rows(COUNT)["position"]
            run(heavier, grains, grains)
            assert copied() == {}
            assert_field(run(around, grains, grains), expected_around(3))
            assert copied() == to_device("position")
            grains.numpy()
            assert copied() == {}


@lw.pairwise
def outweighs(target: Grain, source: Grain) -> lw.f32:
    return lw.select(source.serial < 3, target.mass, 0.0)


@lw.pairwise
def outweighed(target: Grain, source: Grain) -> lw.f32:
    return lw.select(target.serial < COUNT, source.mass, 0.0)


def test_a_repeated_call_brings_what_either_parameter_reads(device: str) -> None:
    """One array is given twice, and each parameter reads another field of it."""
    grains = two(device)
    for number in range(1, 6):
        grains.host.mass = number
        assert_field(outweighs(grains, grains), 3 * number)
        assert_field(outweighed(grains, grains), COUNT * number)
        grains.host.serial = np.arange(COUNT) + number
        assert_field(outweighs(grains, grains), max(0, 3 - number) * number)
        grains.host.serial = np.arange(COUNT)


def test_searches_look_at_the_positions_of_the_newest_side(device: str) -> None:
    grains = two(device)
    for _ in range(2):
        grains.host.position = np.full((COUNT, 3), np.nan)
        with pytest.raises(ArgumentError, match="a search needs finite numbers"):
            around(grains, grains)
        grains.host.position = rows(COUNT)["position"]
        np.testing.assert_allclose(host(around(grains, grains)), sums_around(), rtol=1e-6)


def sums_around() -> np.ndarray:
    place = rows(COUNT)["position"]
    return (np.square(place[:, None] - place).sum(2) <= 1.5**2) @ rows(COUNT)["mass"]


def expected_around(mass: float) -> np.ndarray:
    place = rows(COUNT)["position"]
    return ((np.square(place[:, None] - place).sum(2) <= 1.5**2).sum(1) * mass).astype("f4")


def test_calls_that_were_bound_before_there_were_two_sides(device: str) -> None:
    grains = array_of(rows(COUNT), device, layout=lw.AoS())
    launch, doubled, taken = fatten.bind(grains[::2], 1), weight.bind(grains), grains.serial
    launch()
    if device != "cuda":  # where that is what the first .host does
        grains._storage.make_host(lw.SoA())  # pyright: ignore[reportPrivateUsage]
    expected = rows(COUNT)["mass"]
    for number in range(2):
        expected[::2] += 1
        assert_field(grains.host.mass, expected)
        launch()
        taken[3] = number
        assert grains.host.serial[3] == number
    grains.host.mass = 5
    assert_field(doubled(), 10)


def test_kernels_run_on_both_sides() -> None:
    grains = two()
    with Counted() as copied:
        fatten(grains.host, 1)
        assert copied() == to_host("mass")
        fatten(grains, 1)
        assert copied() == to_device("mass")
        assert_field(grains.mass, rows(COUNT)["mass"] + 2)
        # Both sides in one call: what it reads is brought before anything is said to have changed.
        assert_field(heavier(grains, grains.host), heavier(grains, grains))
        assert copied() == to_host("mass")


@lw.elementwise
def gather(grain: Grain, other: Grain):
    grain.mass += other.mass


def test_one_side_is_updated_while_the_other_is_read() -> None:
    grains = two()
    for _ in range(3):
        before = host(grains.mass).copy()
        gather(grains, grains.host)
        assert_field(grains.host.mass, 2 * before)
        gather.bind(grains.host, grains)()
        assert_field(grains.mass, 4 * before)


def test_parts_and_rows_of_both_sides(device: str) -> None:
    grains = two(device)
    expected = rows(COUNT)
    with Counted() as copied:
        grains.host[3].mass = 50
        assert copied() == to_host("mass")
        assert grains[3].mass == 50
        assert copied() == to_device("mass")
        grains[4].position.y = 8
        assert grains.host[4].position.y == 8
        assert copied() == to_host("position")
        part = grains.host[5:9]
        part.mass = 1
        grains[:2] = grains[2:4]
        expected["mass"][3], expected["mass"][5:9], expected["position"][4, 1] = 50, 1, 8
        expected[:2] = expected[2:4]
        assert_field(grains[::3].host.mass, expected["mass"][::3])
        assert_field(grains.host[1:].numpy()["position"], expected["position"][1:])
        fatten(grains[1::2], 1)
        expected["mass"][1::2] += 1
        assert_field(part.mass, expected["mass"][5:9])
        assert_field(grains.host[grains.host.mass > 5].serial, expected["serial"][expected["mass"] > 5])
    assert_same(grains, expected)


def assert_same(grains: RecordArray, expected: np.ndarray) -> None:
    for side in (grains, grains.host):
        assert len(side) == len(expected)
        for name in NAMES:
            assert_field(getattr(side, name), expected[name])
    for name, values in grains.numpy().items():
        np.testing.assert_array_equal(values, expected[name])


@pytest.mark.parametrize("case", [c for c in CASES if c.records], ids=str)
def test_kernels_use_no_field_beside_those_that_they_name(case: Case) -> None:
    """What the text of the kernel reads and writes, beside what is brought for it and counted as changed."""
    lowered, records = case.kernel.lowered, {
        n: kind for n, kind in case.kernel.signature.parameters.items() if isinstance(kind, Record)
    }  # fmt: skip
    said = {n: uses_of(lowered, n, record) for n, record in records.items()}
    accesses = [a for a in field_accesses(reference_kernel(case, lw.SoA(), "cpu", same=False)) if a.array in records]
    for a in accesses:
        bit = bits_of(records[a.array])[a.field]
        assert not a.read or said[a.array].reads & bit
        assert not a.written or said[a.array].writes & bit


# ------------------------------------------------------------ arrays that were handed out


def test_what_is_written_to_an_array_that_was_handed_out_is_never_missed(device: str) -> None:
    grains = two(device)
    part = grains.mass[::2][1:]  # what keeps the field open is neither the array nor a view of it, but a view of a view
    with Counted() as copied:
        for number in range(3):
            part[0] = 100 + number
            assert grains.host.mass[2] == 100 + number
            assert copied() == to_host("mass")
        part[0] = 200
        del part
        assert grains.host.mass[2] == 200
        assert copied() == to_host("mass")
        assert grains.host.mass[2] == 200
        assert copied() == {}


@pytest.mark.parametrize("what", ["field", "part of a field", "memory"])
def test_what_is_handed_out_while_the_host_has_all_of_it_makes_it_late(what: str, device: str) -> None:
    grains = two(device)
    for number in range(1, 4):
        grains.numpy()  # nothing is late on the host
        lent = {"field": lambda: grains.serial, "part of a field": lambda: grains[3:].serial}.get(
            what, lambda: grains.data
        )()
        if what == "memory":
            lent[...] = 0
        else:
            lent[...] = number
        del lent
        expected = np.arange(COUNT) if what == "part of a field" else np.zeros(COUNT)
        expected[3 if what == "part of a field" else 0 :] = 0 if what == "memory" else number
        assert_field(grains.host.serial, expected)


@pytest.mark.parametrize("how", ["memoryview", "interface", "dlpack"])
def test_other_libraries_keep_a_field_open(how: str) -> None:
    grains = two()
    field = grains.serial
    match how:
        case "memoryview":
            other: Any = memoryview(field)  # pyright: ignore[reportArgumentType]
        case "dlpack":
            other = np.from_dlpack(field)
        case _:
            other = np.asarray(type("Foreign", (), {"__array_interface__": field.__array_interface__, "kept": field})())
    del field
    _ = grains.host.serial
    with Counted() as copied:
        other[3] = -4
        assert grains.host.serial[3] == -4
        assert copied() == to_host("serial")


def test_the_allocation_is_a_loan_of_all_fields(device: str) -> None:
    grains = two(device)
    data = grains.data
    with Counted() as copied:
        grains.numpy()
        copied()
        data[...] = 0
        assert not grains.host.serial.any()
        grains.numpy()
        assert copied() == to_host(*NAMES) | {"serial to host": 2 * COUNT * 8}
        del data
        grains.numpy()
        copied()
        grains.numpy()
        assert copied() == {}
    with pytest.raises(ValueError, match="read-only"):
        grains.host.data[0] = 1


def test_structured_arrays_and_two_sides() -> None:
    grains = two()
    table = grains.to_structured()
    alias = Grain.array(table, copy=False)
    del table
    grains.numpy()
    fatten(alias, 1)  # which shares the memory that was lent
    assert_field(grains.host.mass, rows(COUNT)["mass"] + 1)
    grains.host.mass = 3
    assert_field(grains.to_structured()["mass"], 3)
    with pytest.raises(ValueError, match="read-only"):
        grains.host.to_structured()["mass"][0] = 1
    for make in (
        lambda: alias._storage.make_host(lw.SoA()),  # pyright: ignore[reportPrivateUsage]
        lambda: Grain.array(rows(3), copy=False, host_layout=lw.SoA()),
    ):
        with pytest.raises(ArgumentError, match="one side"):
            make()


def test_a_device_field_that_was_handed_out_before_the_host_changed(device: str) -> None:
    grains = two(device)
    taken = grains.mass
    grains.host.mass = 4
    fatten(grains, 1)
    assert_field(taken, 5)  # in place: it shows what the device has
    taken[0] = 9
    assert grains.host.mass[0] == 9


def test_fields_of_the_host_are_read_only(device: str) -> None:
    grains = two(device)
    before = grains.host.mass
    advice = (
        r"\.mass of the host's side is read-only, because writes to it cannot be tracked; assign the whole field, "
        r"array\.host\.mass = values, or records: array\.host\[i\]\.mass = value, array\.host\[2:5\] = records"
    )
    with pytest.raises(ValueError, match=f"assignment destination is read-only: {advice}"):
        before[0] = 1
    with pytest.raises(ValueError, match=f"output array is read-only: {advice}"):
        before += 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        before.flags.writeable = True
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.asarray(before).flags.writeable = True
    assert type(before + 1) is np.ndarray


def test_memory_is_free_without_the_garbage_collector(device: str) -> None:
    grains = two(device)
    kept = grains.host
    field = grains.mass
    views = weakref.ref(places_of(grains)), weakref.ref(places_of(kept))
    gc.disable()
    try:
        del grains
        assert_field(kept.mass, host(field))
        kept.mass = 3
        fatten(kept.to(device), 1)
        del kept
        assert views[0]() is None
        assert views[1]() is None
    finally:
        gc.enable()


# ------------------------------------------------------------ what else arrays do


def test_growth_on_either_side(device: str) -> None:
    grains, expected = two(device, 5), rows(5)
    other = grains.host
    other.mass = 7
    expected["mass"] = 7
    with Counted() as copied:
        grains.append(Grain(mass=1, serial=-1))
        assert copied() == to_device("mass", n=5)
        assert len(other) == 6
        assert other.capacity == grains.capacity
        other.append([Grain(mass=2, serial=-2)])
        assert other.compact(other.serial != 3) == 6
    born = np.array([((0, 0, 0), (0, 0, 0), 1, -1, False), ((0, 0, 0), (0, 0, 0), 2, -2, False)], KIND)
    expected = np.append(expected, born)
    expected = expected[expected["serial"] != 3]
    assert_same(grains, expected)
    assert grains.host is other
    grains.append(grains.host[:2].to(device))
    assert len(other) == 8
    grains.reserve(50)
    assert other.capacity == 50


def test_what_was_bound_to_either_side_notices_growth() -> None:
    grains = two()
    calls = [weight.bind(a) for a in (grains, grains.host, grains[2:], grains.host[2:])]
    view, row, field = grains.host[1:], grains.host[2], grains.host.mass
    grains.append(Grain())
    for call in calls:
        with pytest.raises(ArgumentError, match="was changed in length since"):
            call()
    with pytest.raises(ArgumentError, match="take the view again"):
        _ = view.mass
    with pytest.raises(ArgumentError, match="take it again"):
        _ = row.mass
    assert_field(field, rows(COUNT)["mass"])


def test_copies_have_as_many_sides(device: str) -> None:
    grains = two(device)
    grains.host.mass = 4
    for other in (grains.copy(), copy.deepcopy(grains), pickle.loads(pickle.dumps(grains))):
        assert repr(other) == repr(grains)
        assert "also as SoA on the host" in repr(other)
        assert_field(other.mass, 4)
        other.host.mass = 5
        assert_field(other.mass, 5)
    assert_field(grains.mass, 4)
    for other in (grains.host.copy(), pickle.loads(pickle.dumps(grains.host)), grains.with_layout(lw.SoA())):
        assert "also" not in repr(other)
        assert_field(other.mass, 4)
        other.mass = 6
    assert_field(grains.mass, 4)


def test_to_the_host_takes_what_is_there() -> None:
    grains = array_of(rows(COUNT), "python", layout=lw.AoS(), host_layout=lw.SoA())
    with Counted() as copied:
        _ = grains.host.position, grains.host.velocity
        copied()
        there = grains.to("cpu")
        assert copied() == to_host("mass", "serial", "alive")
        assert (there.layout, there.device) == (lw.AoS(), "cpu")
        assert_field(grains[2:5].to("cpu").mass, rows(COUNT)["mass"][2:5])
        assert copied() == {}
        grains.host.mass = 1
        assert_field(grains.host[2:5].to("python").mass, 1)
        assert copied() == to_device("mass")
        assert grains.host.to("python").device == "python"
    assert_same(grains, np.array([(*r.tolist()[:2], 1, *r.tolist()[3:]) for r in rows(COUNT)], KIND))


def test_a_host_side_that_goes(device: str) -> None:
    grains = two(device)
    other = grains.host
    part = other[2:4]
    other.mass = 4
    grains.position = (1, 1, 1)
    del grains.host
    assert_field(grains.mass, 4)
    assert_field(other.position, 1)  # an array of its own
    grains.mass = 5
    other.mass = 6
    assert_field(grains.mass, 5)
    assert_field(part.mass, 6)
    del grains.host
    with pytest.raises(ArgumentError, match=r"delete \.host of that array"):
        del two(device).host.host
    assert (grains.host is grains) is (device != "cuda")


def test_one_side() -> None:
    grains = array_of(rows(COUNT))
    assert grains.host is grains
    part = grains[2:]
    assert part.host is part
    with pytest.raises(AttributeError, match="Grain has no field 'host'"):
        grains.host = grains  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(ArgumentError, match="a layout is"):
        Grain.zeros(3, host_layout="SoA")  # pyright: ignore[reportArgumentType]
    with pytest.raises(RecordError, match="arrays of records use the name 'host' themselves"):
        lw.record(type("Bad", (), {"__annotations__": {"host": lw.f32}}))


def test_no_elements(device: str) -> None:
    grains = two(device, 0)
    assert grains.host.mass.shape == (0,)
    assert grains.numpy()["position"].shape == (0, 3)
    grains.host.append(Grain(mass=2))
    assert_field(grains.mass, [2])


def test_records_of_ragged_arrays_have_one_side() -> None:
    lists = lw.ragged(array_of(rows(6)), counts=[2, 4])
    assert lists.data.host is lists.data
    grains = two(n=6)
    grains.host.mass = 9
    assert_field(lw.ragged(grains, counts=[2, 4]).data.mass, 9)


def test_populations_with_two_sides() -> None:
    grains = two(n=6)
    population = lw.Population(grains, ids="serial")
    fates = np.array([lw.Fate.DIE, lw.Fate.KEEP, lw.Fate.SPLIT] * 2)
    grains.host.mass = np.arange(6)
    population.apply(fates)
    assert_field(grains.host.serial, [1, 2, 4, 5, 6, 7])
    assert_field(grains.host.mass, [1, 2, 4, 5, 2, 5])
    assert_field(lw.compact(grains, grains.host.mass > 2).serial, [4, 5, 7])
    assert_field(lw.concatenate([grains, grains]).mass, [1, 2, 4, 5, 2, 5] * 2)


@pytest.mark.parametrize("where", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_simulations_over_two_sides(where: str) -> None:
    random = np.random.default_rng(1)
    fields = {
        "position": random.normal(size=(64, 3)),
        "velocity": random.normal(size=(64, 3)),
        "mass": np.full(64, 1 / 64),
    }
    plain, other = (
        gravity.Simulation(BODY.array(**fields, device=where, **sides), softening=0.05)
        for sides in ({}, {"host_layout": lw.AoS()})
    )
    watched = other.bodies.host
    for simulation in (plain, other):
        simulation.advance(8, dt=1e-3)
    assert_field(watched.position, host(plain.bodies.position))
    position = 0.5 * host(plain.bodies.position)
    plain.bodies.position = position
    watched.position = position  # forces are computed again, as they are of other places
    for simulation in (plain, other):
        simulation.advance(8, dt=1e-3)
    assert_field(watched.position, host(plain.bodies.position))


def test_the_profile_shows_copies() -> None:
    grains, profile = two(), Profile()
    _ = grains.host.mass  # nobody counts
    with profile.span("output"):
        _ = grains.host.position
        grains.host.mass = 2
        fatten(grains, 1)
    assert "Grain.position to host" in str(profile)
    assert "copies between sides of arrays: 1 to host (240 bytes), 1 to device (80 bytes)" in str(profile)
    parts = profile.summary()["stages"]["copies"]["parts"]
    assert {n: (p["calls"], p["bytes"]) for n, p in parts.items()} == {
        "Grain.position to host": (1, 240), "Grain.mass to device": (1, 80)
    }  # fmt: skip
    assert "copies between" not in str(Profile())


# ------------------------------------------------------------ anything, in any order, beside a structured array


def values(name: str, n: int, number: int) -> np.ndarray:
    return np.full(rows(n)[name].shape, number, KIND[name].base)


class Changing(RuleBasedStateMachine):
    """An array with two sides and a structured array, changed alike."""

    device, layouts = "python", LAYOUTS

    @initialize(data=st.data(), n=st.integers(0, 9))
    def begin(self, data: Any, n: int) -> None:
        self.rows, self.next = rows(n), n
        layout, other = (data.draw(st.sampled_from(self.layouts)) for _ in range(2))
        self.array = array_of(self.rows, self.device, layout=layout, host_layout=other)
        self.taken: dict[str, Any] = {}  # arrays of the device's side that somebody has
        self.outdated: set[str] = set()  # of those that were changed on the host's side and not read here since

    def side(self, number: int) -> RecordArray:
        return self.array.host if number else self.array

    def changed(self, number: int, *names: str) -> None:
        (self.outdated.update if number else self.outdated.difference_update)(names)

    @rule(side=st.integers(0, 1), name=st.sampled_from(NAMES), number=st.integers(0, 1))
    def assign(self, side: int, name: str, number: int) -> None:
        setattr(self.side(side), name, values(name, len(self.rows), number))
        self.rows[name] = number
        self.changed(side, name)

    @rule(side=st.integers(0, 1), name=st.sampled_from(NAMES), step=st.integers(1, 3))
    def assign_a_part(self, side: int, name: str, step: int) -> None:
        setattr(self.side(side)[1::step], name, values(name, len(self.rows[1::step]), 1))
        self.rows[name][1::step] = 1
        self.changed(side, name)

    @rule(side=st.integers(0, 1), place=st.integers(0, 30))
    def assign_a_row(self, side: int, place: int) -> None:
        if place < len(self.rows):
            self.side(side)[place].mass = place
            self.rows["mass"][place] = place
            self.changed(side, "mass")

    @rule(side=st.integers(0, 1))
    def assign_records(self, side: int) -> None:
        half = len(self.rows) // 2
        self.side(side)[:half] = self.side(side)[half : 2 * half]
        self.rows[:half] = self.rows[half : 2 * half].copy()
        self.changed(side, *NAMES)

    @rule(bound=st.booleans(), part=st.booleans())
    def run_a_kernel(self, bound: bool, part: bool) -> None:
        step = 2 if part and not isinstance(self.array.layout, lw.AoSoA) else 1
        grains = self.array[::step]
        (drift.bind(grains, 1) if bound else lambda: drift(grains, 1))()
        self.rows["position"][::step] += self.rows["velocity"][::step]
        self.changed(0, "position", "velocity")

    @rule()
    def run_a_kernel_that_reads(self) -> None:
        assert_field(weight(self.array), 2 * self.rows["mass"])
        self.changed(0, "mass")

    @rule(name=st.sampled_from(NAMES))
    def take(self, name: str) -> None:
        field = getattr(self.array, name)
        self.changed(0, name)
        assert_field(field, self.rows[name])
        if not isinstance(self.array.layout, lw.AoSoA):
            self.taken[name] = field[::2]

    @rule(name=st.sampled_from(NAMES))
    def write_to_what_was_taken(self, name: str) -> None:
        if name in self.taken and name not in self.outdated:
            self.taken[name][...] = True if name == "alive" else 1
            self.rows[name][::2] = 1

    @rule(name=st.sampled_from(NAMES))
    def let_go(self, name: str) -> None:
        self.taken.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def read(self, name: str) -> None:
        values = getattr(self.array.host, name)
        assert_field(values, self.rows[name])
        assert not values.flags.writeable or not len(values)

    @rule()
    def read_all(self) -> None:
        for name, values in self.array.numpy().items():
            np.testing.assert_array_equal(values, self.rows[name])

    @rule(side=st.integers(0, 1), n=st.integers(0, 4))
    def append(self, side: int, n: int) -> None:
        self.side(side).append(array_of(rows(n, self.next), self.side(side).device))
        self.rows, self.next = np.concatenate([self.rows, rows(n, self.next)]), self.next + n
        self.grown()

    @rule(side=st.integers(0, 1))
    def compact(self, side: int) -> None:
        mask = self.rows["serial"] % 3 != 0
        self.side(side).compact(mask)
        self.rows = self.rows[mask]
        self.grown()

    def grown(self) -> None:
        self.taken.clear()
        self.outdated.clear()

    @rule()
    def drop_and_make_again(self) -> None:
        self.array = self.array.copy()
        self.grown()

    @invariant()
    def as_long(self) -> None:
        assert len(self.array) == len(self.array.host) == len(self.rows)

    def teardown(self) -> None:
        if hasattr(self, "array"):
            assert_same(self.array, self.rows)


class ChangingOnACpu(Changing):
    """Kernels on both sides, in two layouts: each is compiled."""

    device, layouts = "cpu", [lw.AoS()]

    @rule(side=st.integers(0, 1))
    def run_on_either_side(self, side: int) -> None:
        fatten(self.side(side), 1)
        self.rows["mass"] += 1
        self.changed(side, "mass")

    @rule()
    def search(self) -> None:
        place = self.rows["position"]
        expected = (np.square(place[:, None] - place).sum(2) <= 1.5**2) @ self.rows["mass"]
        np.testing.assert_allclose(host(around(self.array, self.array)), expected, rtol=1e-5)
        self.changed(0, "position", "mass")


class ChangingOnAGpu(Changing):
    device, layouts = "cuda", [lw.AoS(), lw.SoA(), lw.AoSoA(8)]


TestChanging = Changing.TestCase
TestChangingOnACpu = ChangingOnACpu.TestCase
TestChangingOnAGpu = pytest.mark.cuda(ChangingOnAGpu.TestCase)
TestChanging.settings = settings(max_examples=25, stateful_step_count=30)
TestChangingOnACpu.settings = TestChangingOnAGpu.settings = settings(max_examples=15, stateful_step_count=30)
