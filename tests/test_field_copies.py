"""Copies of fields refuse to be written to on every device; what is computed of them is an ordinary array."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime.field_copies import WRITING, device_copy, device_copy_class, is_writable
from lanewise.runtime.memory import array_module
from tests.corpus_kernels import Body

DEVICES = [pytest.param("cuda", marks=pytest.mark.cuda), "cpu"]


class Memory:
    """A piece of memory, as CuPy has them."""

    def __init__(self, whole: Any) -> None:
        self.whole, self.ptr = whole, whole.ctypes.data


class Pointer:
    """A place in a piece of memory."""

    def __init__(self, memory: Memory, offset: int) -> None:
        self.mem, self.ptr = memory, memory.ptr + offset

    def copy_from_async(self, values: Any) -> None:
        self.mem.whole[...] = values


MEMORIES: dict[int, Memory] = {}


class StandIn(np.ndarray[Any, Any]):
    """An array of NumPy that is as those of CuPy: always writable, with a pointer to the piece of memory that it lies
    in as `data`.
    """

    @property
    def data(self) -> Any:  # type: ignore[override]
        whole: Any = self
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        memory = MEMORIES.setdefault(id(whole), Memory(whole))  # which holds it: the number stays its own
        return Pointer(memory, self.ctypes.data - memory.ptr)


def stand_in() -> Any:
    values = np.arange(6.0).reshape(3, 2).view(StandIn).copy()
    return values, device_copy(values, "assign the whole field")


def writes(x: Any) -> list[Any]:
    """Ways to write to an array of shape (n, 2)."""

    def add() -> None:
        nonlocal x
        x += 1

    def power() -> None:
        nonlocal x
        x **= 2

    def part() -> None:
        x[:, 0][1:] = 4

    def transposed() -> None:
        view = x.T
        view *= 2

    return [
        add, power, part, transposed, lambda: x.__setitem__(0, 1), lambda: x.fill(0), lambda: x.sort(axis=0), lambda: x.put([0], [1]),
        lambda: x.reshape(-1).__setitem__(slice(None), 0), lambda: np.add(x, 1, out=x), lambda: np.multiply(1.0, 2.0, out=x[0]),
        lambda: np.add.at(x, 0, 1.0),
    ]  # fmt: skip


def test_a_copy_of_a_library_without_read_only_arrays() -> None:
    values, copy = stand_in()
    assert not is_writable(copy)
    assert copy[1:].data.ptr == values.data.ptr + 16
    with pytest.raises(ValueError, match="read-only: assign the whole field"):
        copy.data.copy_from_async(np.zeros((3, 2)))
    (copy + 1).data.copy_from_async(np.zeros((3, 2)))
    assert is_writable(values)
    assert (copy.flags["WRITEABLE"], copy.flags.c_contiguous) == (False, True)
    for write in writes(copy):
        with pytest.raises(ValueError, match="read-only: assign the whole field"):
            write()
    assert values.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_what_is_computed_of_it_is_an_ordinary_array() -> None:
    values, copy = stand_in()
    for result in (
        copy + 1,
        -copy,
        np.add(copy, copy),
        copy > 1,
        copy.copy(),
        np.concatenate([copy, copy]),
        copy[[0, 2]],
        copy.sum(0),
    ):
        assert is_writable(result)
        result[...] = 0
    other = np.zeros((3, 2)).view(StandIn)
    np.add(copy, 1, out=other)
    other[0] = copy[0]
    assert other.tolist() == [[0, 1], [3, 4], [5, 6]]
    assert values.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_elementwise_calls_of_the_library_ask_before_they_write() -> None:
    """CuPy calls this hook of the arguments of its own functions, whose first `nin` arguments are read."""
    values, copy = stand_in()

    class Function:
        nin = 2

        def __call__(self, a: Any, b: Any, out: Any = None) -> Any:
            assert (type(a), type(b)) == (StandIn, StandIn)
            return np.add(a, b, out=out)

    hook = type(copy).__cupy_override_elementwise_kernel__
    assert type(hook(copy, Function(), copy, copy)) is StandIn
    for call in (
        lambda: hook(copy, Function(), values, values, copy),
        lambda: hook(copy, Function(), copy, values, out=copy),
    ):
        with pytest.raises(ValueError, match="output array is read-only: assign the whole field"):
            call()
    fresh = (copy + 1).view(type(copy))  # of its class, in memory of its own
    hook(fresh, Function(), values, copy, out=fresh)
    assert fresh.tolist() == (2 * values).tolist()


def test_what_shares_memory_without_a_word_is_refused() -> None:
    _, copy = stand_in()
    with pytest.raises(BufferError, match=r"a read-only copy is not shared by DLPack, .*: assign the whole field"):
        copy.__dlpack__()
    assert device_copy_class(StandIn) is type(copy)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "layout", [lw.AoSoA(4), lw.AoSoA(2), lw.SoAoAS((("velocity.x", "mass"), ("velocity.y", "position")))], ids=str
)
def test_fields_that_are_copies(layout: lw.Layout, device: str) -> None:
    bodies = Body.array(velocity=np.arange(15.0).reshape(5, 3), mass=np.arange(5.0), layout=layout, device=device)
    before = bodies.numpy()
    for view in (bodies, bodies[1:4]):
        for write in writes(view.velocity):
            with pytest.raises(
                ValueError, match=r"read-only: \.velocity is a copy, as the field lies in .*; assign the whole field"
            ):
                write()
    for name, values in bodies.numpy().items():
        assert values.tolist() == before[name].tolist()
    bodies.velocity = bodies.velocity * 2 + 1
    bodies.velocity = bodies.contiguous("velocity")
    assert bodies.velocity.tolist() == (before["velocity"] * 2 + 1).tolist()
    assert not isinstance(bodies.velocity * 2, type(bodies.velocity))


@pytest.mark.parametrize("count", [5, 0])
def test_copies_on_the_host_stay_read_only(count: int) -> None:
    """What would be written to one would be lost, or be overwritten by the other side."""
    bodies = Body.array(velocity=np.ones((count, 3)), mass=np.arange(1.0, count + 1), layout=lw.AoSoA(2), device="cpu")
    other_side = Body.zeros(count, host_layout=lw.AoS(), device="cpu").host
    for values in (
        bodies.velocity,
        bodies.mass,
        bodies.mass[::2],
        bodies[1:3].mass,
        other_side.mass,
        bodies.to_structured(),
    ):
        for unlock in (lambda x=values: x.setflags(write=True), lambda x=values: setattr(x.flags, "writeable", True)):
            with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
                unlock()
    assert bodies.velocity.shape == (count, 3)
    assert (bodies.mass.dtype, bodies.to_structured().dtype) == (np.float32, Body.dtype)


@lw.elementwise
def speed2(body: Body) -> lw.f32:
    return lw.dot(body.velocity, body.velocity)


@lw.threadwise
def clear(i: lw.index, a: lw.Array1[lw.f32]):
    a[i] = 0.0


@pytest.mark.parametrize("device", DEVICES)
def test_kernels_read_copies_and_do_not_write_to_them(device: str) -> None:
    bodies = Body.array(mass=np.arange(5.0), layout=lw.AoSoA(2), device=device)
    module = array_module(device)
    assert speed2(bodies).tolist() == [0] * 5
    assert lw.cumsum(bodies.mass).tolist() == [0, 1, 3, 6, 10]
    assert lw.compact(bodies.mass, module.asarray(bodies.mass > 2)).tolist() == [3, 4]
    assert bodies[bodies.mass > 2].mass.tolist() == [3, 4]
    for call in (
        lambda: speed2(bodies, out=bodies.mass), lambda: lw.cumsum(bodies.contiguous("mass"), out=bodies.mass),
        lambda: clear(bodies.mass, grid=5),
    ):  # fmt: skip
        with pytest.raises(lw.ArgumentError, match=r"read-only.*\.mass is a copy"):
            call()
    assert bodies.mass.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.cuda
def test_functions_of_cupy() -> None:
    import cupy

    bodies = Body.array(velocity=np.ones((5, 3)), mass=np.arange(5.0), layout=lw.AoSoA(2), device="cuda")
    x, other = bodies.velocity, cupy.ones((5, 3), "f4")
    assert {n for n in WRITING if not hasattr(x, n)} <= {"__imatmul__", "scatter_add", "scatter_max", "scatter_min"}
    ways: dict[str, Any] = {
        "a function that reads it, too": lambda: cupy.add(x, 1, out=x),
        "a positional result": lambda: cupy.add(x, other, x),
        "a positional result of one": lambda: cupy.sqrt(other, x),
        "copyto": lambda: cupy.copyto(x, other),
        "put": lambda: cupy.put(x, 0, 1),
        "set": lambda: x.set(np.zeros((5, 3), "f4")),
        "a kernel": lambda: cupy.ElementwiseKernel("T a", "T b", "b = a")(other, x),
        "a function of NumPy": lambda: np.add(other, 1, out=x),
        "a view": lambda: x.view().__setitem__(0, 1),
        "a row": lambda: x[1].fill(2),
        "at": lambda: cupy.add.at(x, (0, 0), 1.0),
        "copyto of NumPy": lambda: np.copyto(x, other),
        "copyto of other numbers": lambda: cupy.copyto(x, other.astype("f8")),
        "put of NumPy": lambda: np.put(x, [0], [1]),
        "at of NumPy": lambda: np.add.at(x, (0, 0), 1.0),
    }
    passed: list[str] = []
    for name, write in ways.items():
        try:
            write()
        except ValueError as error:
            assert re.search(r"read-only: \.velocity is a copy", str(error)), name  # noqa: PT017
        else:
            passed.append(name)
    assert passed == []
    for result in (
        x + 1, 2 * x, x @ other.T, cupy.sqrt(x), x.sum(axis=0), cupy.concatenate([x, other]), cupy.linalg.norm(x, axis=1), x.copy(),
        x.astype("f8"), cupy.where(x > 0, x, other), x[other[:, 0] > 0], cupy.array(x), x.mean(0), cupy.stack([x, x]), np.sqrt(x), np.sum(x),
        cupy.sort(x, axis=0), x.max(), cupy.zeros_like(x), cupy.einsum("ij,ij->i", x, x), other - x, other > x, cupy.ascontiguousarray(x.T),
    ):  # fmt: skip
        assert type(result) is cupy.ndarray or is_writable(result)
        result[...] = 0
    other[...] = x
    other += x
    assert other.get().tolist() == [[2] * 3] * 5
    assert x.get().tolist() == [[1] * 3] * 5
    assert x.__cuda_array_interface__["data"][1] is True
    with pytest.raises(BufferError, match="read-only"):
        cupy.from_dlpack(x)
    assert cupy.from_dlpack(bodies.contiguous("velocity")).shape == (5, 3)
    moved = bodies.to("cpu")
    assert moved.velocity.tolist() == bodies.velocity.tolist()
