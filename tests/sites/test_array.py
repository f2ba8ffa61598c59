"""Sites: what they hold, how much memory they take, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.patterns.sitewise import kernel as flows
from lanewise.patterns.sitewise import sites as array
from lanewise.patterns.sitewise.kinds import REST
from lanewise.runtime import memory
from lanewise.support.errors import ArgumentError, DeviceError


@lw.sitewise(lw.D2Q9)
def flow(f: lw.populations):
    f[0] = f[0]


@lw.sitewise(lw.D3Q19)
def deep(f: lw.dpopulations):
    f[0] = f[0]


for kernel in (flow, deep):
    kernel.wall(2, "wall")
    kernel.wall(3, "lid", velocity="lid_velocity")


def refusal(**changed: Any) -> str:
    given: dict[str, Any] = {"shape": (2, 3), "device": "cpu", **changed}
    with pytest.raises((ArgumentError, DeviceError)) as error:
        flow.sites(given.pop("shape"), **given)
    return str(error.value)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("shape", [(2,), (2, 3, 4), (0, 3), (2, -3), (2.5, 3), (2.0, 3), ("a", 3), (float("inf"), 3), 4, None, "ab"], ids=str)  # fmt: skip
def test_shapes_that_are_none(shape: Any) -> None:
    assert refusal(shape=shape) == f"sites of D2Q9 have the shape (ny, nx), each at least 1; found {shape!r}"


def test_the_shape_in_three_dimensions() -> None:
    with pytest.raises(ArgumentError) as error:
        deep.sites((4, 4))
    assert str(error.value) == "sites of D3Q19 have the shape (nz, ny, nx), each at least 1; found (4, 4)"


KINDS = "the kinds are 0, 2, 3 (@flow.kind(number, name) and flow.wall(number, name) make others)"


@pytest.mark.parametrize(
    ("mask", "text"),
    [
        (np.zeros((3, 2), int), "the mask has the shape (3, 2), and the sites (2, 3)"),
        (np.zeros(6, int), "the mask has the shape (6,), and the sites (2, 3)"),
        (np.zeros((2, 3)), "the mask holds kinds, integers from 0 to 31; found float64"),
        ("wall", "the mask holds kinds, integers from 0 to 31; found <U4"),
        ([[0, 0, 5], [5, 2, 0]], f"the mask has kind 5 2 times, first at (0, 2); {KINDS}"),
        (np.full((2, 3), -1), f"the mask has kind -1 6 times, first at (0, 0); {KINDS}"),
        (np.full((2, 3), 258), f"the mask has kind 258 6 times, first at (0, 0); {KINDS}"),
        (np.full((2, 3), REST), f"the mask has kind 32 6 times, first at (0, 0); {KINDS}"),
        (np.eye(2, 3, dtype=bool), f"the mask has kind 1 2 times, first at (0, 0); {KINDS}"),
    ],
    ids=lambda x: "" if isinstance(x, str) else str(x).replace("\n", ""),
)
def test_masks_that_are_none(mask: Any, text: str) -> None:
    assert refusal(mask=mask) == text


def test_a_mask_of_lists_of_different_lengths() -> None:
    text = refusal(mask=[[0, 2, 0], [0]])
    assert text.startswith("the mask is not an array of numbers: setting an array element with a sequence.")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"storage": "f8"}, "storage='f8': wanted one of 'f16', 'f32', 'f64'"),
        ({"storage": "i32"}, "storage='i32': wanted one of 'f16', 'f32', 'f64'"),
        ({"storage": "f64"}, "storage='f64' holds more than the f32 that the function computes; wanted 'f32' or less"),
        ({"storage": "f16"}, "storage='f16' is for GPUs, which convert float16 in one instruction; on a CPU choose 'f32'"),
        ({"streaming": "AA"}, "streaming='AA': wanted one of 'pull', 'push', 'in-place'"),
        ({"layout": "SoA"}, "a layout is lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS() or lw.AoSoA(8), found 'SoA'"),
        ({"layout": lw.SoA}, "a layout is lw.AoS(), lw.SoA(), lw.AoAS(), lw.SoAoAS() or lw.AoSoA(8), found SoA"),
        ({"edges": {"x": ("outflow", "wall")}, "shape": (4, 1)}, "an outflow looks one site further in: wanted at least 2 sites along x, found 1"),
        ({"edges": {"z": "wall"}}, "edges have the axes x, y, found 'z'"),
        ({"device": "tpu"}, "unknown device 'tpu'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)"),
    ],
    ids=lambda x: "" if isinstance(x, str) else str(x),
)  # fmt: skip
def test_what_does_not_fit(given: Any, text: str) -> None:
    assert refusal(**given) == text


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize(("streaming", "copies"), [("pull", 2), ("push", 2), ("in-place", 1)])
@pytest.mark.parametrize("shape", [(1, 1), (5, 7), (40, 33)])
def test_bytes(streaming: str, copies: int, shape: tuple[int, int]) -> None:
    sites = flow.sites(shape, streaming=streaming, layout=lw.AoS(), device="cpu")
    count = shape[0] * shape[1]
    bits = 4 * -(-count // 32) if sites.marks is not None else 0
    assert (sites.marks is None) == (streaming == "in-place" or sites.dense)
    assert sites.nbytes == copies * 9 * 4 * count + 4 * count + bits


def test_bytes_with_walls_in_the_mask() -> None:
    mask = np.zeros((2, 64, 64), int)
    mask[0, 0, 0] = 2
    sites = deep.sites((2, 64, 64), mask=mask, streaming="pull", layout=lw.AoS(), storage="f32", device="cpu")
    assert sites.marks is not None
    assert sites.solids is not None
    count = 2 * 64 * 64
    assert sites.nbytes == 2 * 19 * 4 * count + 4 * count + 2 * count // 8
    assert sites.wall_sites == 1


def test_memory_is_refused_before_anything_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 50 * 40
    needed = 2 * 9 * 4 * count + 4 * count + 2 * 4 * -(-count // 32)
    monkeypatch.setattr(memory, "available_memory", lambda _: needed - 1)

    def allocated(*_: Any, **__: Any) -> None:
        raise AssertionError("allocated")

    for module, name in ((array, "zero_records"), (flows, "site_kinds"), (array, "make_flags"), (array, "bring")):
        monkeypatch.setattr(module, name, allocated)
    text = refusal(shape=(50, 40), streaming="pull", layout=lw.AoS())
    assert text == f"2,000 sites of D2Q9 needs {needed:,} bytes on 'cpu', and {needed - 1:,} are available"
    monkeypatch.undo()
    monkeypatch.setattr(memory, "available_memory", lambda _: needed)
    assert flow.sites((50, 40), streaming="pull", layout=lw.AoS(), device="cpu").nbytes <= needed


def test_what_no_machine_holds_is_refused_at_once() -> None:
    count = 10**12
    text = refusal(shape=(10**6, 10**6), layout=lw.AoS(), mask=None)
    assert text.startswith(f"{count:,} sites of D2Q9 needs {40 * count:,} bytes on 'cpu', and ")


# ---------------------------------------------------------------- what they hold


def test_defaults_of_a_cpu() -> None:
    sites = deep.sites((2, 3, 4), device="cpu")
    assert (sites.form.name, sites.storage.name, sites.layout) == ("in-place", "f64", lw.SoA())
    assert repr(sites) == "<4 x 3 x 2 sites of D3Q19, f64, in-place, SoA on cpu>"
    assert (sites.count, sites.step, sites.fresh, sites.present) == (24, 0, True, frozenset({0}))
    assert all(not field.any() for field in sites.current.numpy().values())


def test_the_kinds_are_those_of_the_mask() -> None:
    mask = np.array([[0, 2, 3], [2, 0, 0]])
    for given in (mask, mask.tolist(), mask.astype(np.int8), np.asfortranarray(mask), mask.astype(np.uint64)):
        sites = flow.sites((2, 3), mask=given, device="cpu")
        np.testing.assert_array_equal(sites.kinds, mask)
        assert sites.present == {0, 2, 3}
        assert sites.wall_sites == 3
    truth = flow.sites((2, 3), mask=np.zeros((2, 3), bool), device="cpu")
    assert truth.present == {0}


def test_parts_cover_all_sites_but_walls_once() -> None:
    mask = np.zeros((30, 40), int)
    mask[10:12, 20:25] = 2
    sites = flow.sites((30, 40), mask=mask, edges={"y": ("wall", "lid")}, device="cpu")
    bulk = np.concatenate([np.arange(first, behind) for first, behind in sites.part(None)])
    other = sites.part(-1)
    assert sorted([*bulk, *other]) == list(np.flatnonzero(mask.ravel() != 2))
    np.testing.assert_array_equal(sites.part(0), other)  # kind 0 is the only one besides walls
    assert set(sites.walled) <= set(other)
    assert len(sites.walled) == 2 * 40 + 2 * (5 + 2 + 2)


def test_two_copies_take_turns() -> None:
    sites = flow.sites((2, 3), streaming="pull", device="cpu")
    first, second = sites.copies
    assert (sites.current, sites.following) == (first, second)
    sites.step = 1
    assert (sites.current, sites.following) == (second, first)
    one = flow.sites((2, 3), streaming="in-place", device="cpu")
    assert one.current is one.following
