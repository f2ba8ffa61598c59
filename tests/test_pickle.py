"""Arrays, rows, values, kernels, plans and searches that go to another process and come back."""

import copy
import multiprocessing
import pickle
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.support.errors import DeviceError, RecordError
from tests import pickled_kernels as module
from tests.layouts.test_layouts import ALL
from tests.pickled_kernels import Grain, attract, bounce, grow, near, total_mass, twice


def grains(layout: Any = None, count: int = 5) -> Any:
    rng = np.random.default_rng(0)
    return Grain.array(
        position=rng.random((count, 3), "f4"), mass=rng.random(count), kind=np.arange(count), alive=np.arange(count) % 2 == 0,
        layout=layout,
    )  # fmt: skip


def through(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


def assert_same(a: Any, b: Any) -> None:
    assert (a.record, a.layout, a.device, len(a)) == (b.record, b.layout, b.device, len(b))
    for name, values in a.numpy().items():
        assert values.tobytes() == b.numpy()[name].tobytes()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("layout", ALL, ids=str)
def test_arrays_in_every_layout(layout, protocol):
    array = grains(layout)
    back = through(array, protocol)
    assert_same(array, back)
    assert type(back[0]) is Grain
    back.mass = 0  # is memory of its own
    assert array.mass[1] > 0


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda a: copy.deepcopy([a, a])[0]])
def test_copies_of_arrays(make):
    array = grains(lw.AoSoA(4))
    back = make(array)
    assert_same(array, back)
    back.mass = 0
    assert array.mass[1] > 0


def test_bits_of_floats_come_back():
    array = grains()
    array.mass = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\x7f" * 5)  # NaN with a payload
    assert_same(array, through(array))


def test_rows_and_values():
    row = grains()[3]
    back = through(row)
    assert type(back) is Grain
    assert repr(back) == repr(row)
    assert repr(copy.deepcopy(row)) == repr(row)
    for value in (
        lw.vec3(1, 2, 3),
        lw.dvec2(0.1, 2),
        lw.ivec4(1, 2, 3, 4),
        lw.vec3(1, 2, 3).xy,
        lw.D2Q9[5].velocity,
        lw.D2Q9[5],
    ):
        for other in (through(value), copy.copy(value), copy.deepcopy(value)):
            assert type(other) is type(value)
            assert repr(other) == repr(value)
    for name in (lw.f32, lw.bool, lw.i64, lw.vec3, lw.dvec2, lw.ivec4):
        assert through(name) is name
        assert copy.deepcopy(name) is name
    assert through(lw.populations) == lw.populations


def test_kernels_are_found_by_name():
    for kernel in (grow, attract, twice, bounce):
        assert through(kernel) is kernel
        assert copy.copy(kernel) is kernel
        assert copy.deepcopy(kernel) is kernel


def test_the_same_interaction_over_another_search():
    back = through(near)
    assert back.python is attract.python
    assert back.search == near.search
    np.testing.assert_array_equal(back(grains(), grains()), near(grains(), grains()))


def test_kernels_of_functions_are_as_their_functions():
    @lw.elementwise
    def local(grain: Grain) -> lw.f64:
        return grain.mass

    for thing in (local, local.python):
        with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
            pickle.dumps(thing)
    assert copy.deepcopy(local) is local


def test_records_of_functions_are_made_again():
    @lw.record
    class Own:
        a: lw.f32

    array = Own.array(a=[1.0, 2.0])
    back = through(array)
    assert back.record == array.record

    @lw.elementwise
    def double(own: Own):
        own.a *= 2

    double(back)  # records are compared by their fields
    assert back.a.tolist() == [2, 4]
    assert through(array[1]).a == 2


def test_a_class_with_other_fields_is_refused(monkeypatch):
    data = pickle.dumps(grains())

    @lw.record
    class Grain:
        mass: lw.f32

    monkeypatch.setattr(module, "Grain", Grain)
    with pytest.raises(RecordError) as caught:
        pickle.loads(data)
    assert str(caught.value) == (
        "what was pickled are records Grain(position: vec3, mass: f64, kind: i32, alive: bool), and "
        "tests.pickled_kernels.Grain is now Grain(mass: f32)"
    )


def test_an_array_of_a_missing_device_is_refused(monkeypatch):
    array = grains()
    restore, (*head, _, fields) = array.to("cpu").__reduce__()
    with pytest.raises(DeviceError, match="cuda:7"):
        restore(*head, "cuda:7", fields)


@pytest.mark.cuda
def test_an_array_of_a_gpu_comes_back_there():
    array = grains().to("cuda")
    assert_same(array, through(array))
    assert through(array.to("cpu")).device == "cpu"


@pytest.mark.parametrize(
    "value",
    [
        *ALL, lw.Plan(tile=64, fma=True), lw.AllPairs(k=3), lw.StaticGrid(radius=2.0, cells=(3, 4)), lw.DynamicGrid(k=5, order="curve"),
        lw.Nearest(k=4, world=lw.Periodic((1, 2, 3), origin=-1)), lw.Neighbors(radius=0.5, world=lw.Bounded((0, 0), (3, 3))), lw.D3Q19,
    ],
    ids=repr,
)  # fmt: skip
def test_choices_are_values(value):
    for other in (through(value), copy.copy(value), copy.deepcopy(value)):
        assert other == value
        assert hash(other) == hash(value)


def test_a_spawned_process_runs_a_kernel_on_an_array():
    before = grains()
    total, back = _in_another_process(total_mass, grow, before)
    assert total == pytest.approx(float(before.mass.sum()) + 2 * len(before))
    grow(before, by=1.0)
    assert_same(before, back)


def _in_another_process(function: Any, *arguments: Any) -> Any:
    root = str(Path(__file__).parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)  # a spawned process takes over the path
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()
