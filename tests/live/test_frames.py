"""Frames as bytes and back; boxes, ranges and the order in which elements are sent."""

from __future__ import annotations

import json
import struct
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanewise as lw
from lanewise.live.boxes import FARTHEST, FrameAxis, FrameBox, sending_order, whole_shares, without_outliers
from lanewise.live.clouds import CloudScene, Shown, shown_by_default
from lanewise.live.fields import FieldScene
from lanewise.live.frame import FrameHeader, decode, encode
from lanewise.live.protocol import FLAGS, HEADER, HEADER_BYTES, KINDS
from lanewise.live.quantise import bound_columns
from lanewise.live.scenes import Asked, finished
from lanewise.support.errors import InputError
from tests.live.sparks import sparks

U32 = st.integers(0, 2**32 - 1)
F32 = st.floats(width=32, allow_nan=False)
NEAR = st.floats(-(2**40), 2**40, width=32)
THREE = st.tuples(F32, F32, F32)


@lw.record
class Grain:
    position: lw.vec3
    mass: lw.f32
    velocity: lw.vec3


MOVING = Shown(position="e.position", heading="e.velocity", values={"mass": "e.mass", "speed": "length(e.velocity)"})


def grains(position: Any, mass: Any = None, velocity: Any = None) -> Any:
    position = np.asarray(position, np.float32).reshape(-1, 3)
    mass = np.ones(len(position), np.float32) if mass is None else np.asarray(mass, np.float32)
    velocity = np.ones_like(position) if velocity is None else np.asarray(velocity, np.float32)
    return Grain.array(position=position, mass=mass, velocity=velocity)


def cloud(array: Any, shown: Shown = MOVING) -> CloudScene:
    return CloudScene(array, shown, {}, lambda: (7, 0.25))


def framed(scene: CloudScene, **asked: Any) -> tuple[FrameHeader, Any]:
    header, body = decode(finished(scene.frames(Asked(**{"field": "mass", **asked})))[0])
    return header, np.frombuffer(body, np.uint16).reshape(header.count, header.components // 2 or 4)


def test_the_header_has_its_bytes() -> None:
    header = FrameHeader(
        kind="arrows", flags=FLAGS["past"], components=12, order=3, sequence=4, count=0, first=5,
        total=6, step=7, time=0.5, origin=(1, 2, 3), extent=(4, 5, 6), low=-1, high=1, scale=1,
    )  # fmt: skip
    golden = (
        b"LWV1" + bytes([KINDS["arrows"], 2, 12, 3]) + struct.pack("<4I", 4, 0, 5, 6) + struct.pack("<Qd", 7, 0.5)
        + struct.pack("<6f", 1, 2, 3, 4, 5, 6) + struct.pack("<ff", -1, 1) + struct.pack("<i", 1)
    )  # fmt: skip
    assert encode(header) == golden + bytes(HEADER_BYTES - len(golden))


def test_the_table_is_what_headers_have() -> None:
    assert {n for n, *_ in HEADER} == {f.name for f in fields(FrameHeader)}
    ends = sorted((at, at + count * struct.calcsize(f"<{code}")) for _, code, at, count in HEADER)
    assert ends[0][0] == 4
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ends))
    assert ends[-1][1] <= HEADER_BYTES


@given(
    st.sampled_from(["points", "arrows", "suffix"]), st.integers(0, 20), U32, U32, st.integers(0, 2**64 - 1),
    st.floats(allow_nan=False), THREE, THREE, F32, F32, st.integers(-5, 5),
)  # fmt: skip
def test_frames_come_back(
    kind: str,
    count: int,
    sequence: int,
    first: int,
    step: int,
    time: float,
    origin: Any,
    extent: Any,
    low: float,
    high: float,
    scale: int,
) -> None:
    header = FrameHeader(
        kind=kind, components=12, count=count, sequence=sequence, first=first, step=step, time=time, origin=origin,
        extent=extent, low=low, high=high, scale=scale,
    )  # fmt: skip
    body = bytes(range(12 * count % 256)) + bytes(12 * count - 12 * count % 256)
    back, rest = decode(encode(header, body))
    assert back == header
    assert bytes(rest) == body


@given(st.binary(max_size=200))
def test_other_bytes_are_refused(data: bytes) -> None:
    for some in (data, b"LWV1" + data):
        if len(some) < HEADER_BYTES or some[:4] != b"LWV1":
            with pytest.raises(InputError, match="wanted"):
                decode(some)


@given(st.floats(-(2**90), 2**90, width=32), st.floats(0, 2**90, width=32))
def test_boxes_hold_what_they_are_for_and_stay(low: float, span: float) -> None:
    high = float(np.float32(low + span))
    axis = FrameAxis().holding(low, high)
    assert axis.origin <= low <= high <= axis.origin + axis.extent
    assert axis.extent == 0 or np.log2(axis.extent) % 1 == 0
    assert np.float32(axis.origin) == axis.origin
    middle = low + (high - low) / 2
    assert axis.holding(min(low, middle), high) is axis or high - low < axis.extent / 4


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(NEAR, NEAR, NEAR), min_size=1, max_size=30))
def test_positions_are_right_to_a_step_of_the_box(position: Any) -> None:
    array = grains(position)
    header, rows = framed(cloud(array))
    place = np.asarray(header.origin) + np.asarray(header.extent) * rows[:, :3] / 65535
    wanted = np.asarray(array.position, float)[sending_order(len(array))]
    assert (np.abs(place - wanted) <= np.asarray(header.extent) / 65535).all()
    assert (header.step, header.time, header.total) == (7, 0.25, len(position))


def test_values_have_the_range_that_was_seen_so_far() -> None:
    array = grains(np.zeros((3, 3)), mass=[1, 2, 5])
    scene = cloud(array)
    header, rows = framed(scene)
    assert (header.low, header.high) == (1, 5)
    value = header.low + (header.high - header.low) * rows[:, 3] / 65535
    assert np.allclose(value, np.float32([1, 2, 5])[sending_order(3)], atol=1e-4)
    array.mass = np.float32([2, 2, 3])
    assert (framed(scene)[0].low, framed(scene)[0].high) == (1, 5)
    asked = framed(scene, low=0.0, high=2.0)
    assert (asked[0].high, asked[1][:, 3].max()) == (2, 65535)


def test_what_is_not_finite_is_left_out() -> None:
    position = np.random.default_rng(1).normal(size=(50, 3))
    position[[3, 9]] = np.nan
    position[4, 1] = np.inf
    scene = cloud(grains(position))
    header, rows = framed(scene)
    assert (header.count, header.total) == (47, 47)
    kept = [r for r in sending_order(50) if r not in (3, 4, 9)]
    place = np.asarray(header.origin) + np.asarray(header.extent) * rows[:, :3] / 65535
    assert np.allclose(place, position[kept], atol=header.extent[0] / 60000)
    assert [scene.picked(k).get("row") for k in (0, 46, 47)] == [kept[0], kept[46], None]


def test_a_pick_is_of_the_order_of_the_frame_that_it_was_made_in() -> None:
    place = np.random.default_rng(4).normal(size=(60, 3)).astype(np.float32)
    array, seen = grains(place), []
    scene = cloud(array)
    for lost in (None, 5, 6, 7, 8):
        if lost is not None:
            place[lost] = np.nan
            array.position = place
        header, rows = framed(scene)
        where = rows[:, :3] / 65535 * header.extent + header.origin
        seen.append((header.order, [int(np.nanargmin(np.abs(place - w).sum(axis=1))) for w in where]))
    assert len({order for order, _ in seen}) == 5
    newest = seen[-1][1]
    assert [scene.picked(k)["row"] for k in range(len(newest))] == newest
    for order, rows_of in seen[1:]:
        assert [scene.picked(k, order)["row"] for k in range(len(rows_of))] == rows_of
    assert scene.picked(0, seen[0][0]) == {}, "so old an order is not kept"
    assert scene.picked(0, 200) == {}


@given(st.lists(st.tuples(THREE, F32.filter(np.isfinite)), min_size=1, max_size=6))
def test_all_finite_numbers_have_a_frame(rows: list[Any]) -> None:
    """However large or small, and however close."""
    position, mass = (np.array(some, np.float32) for some in zip(*rows, strict=True))
    fine = np.isfinite(position).all(axis=1)
    frames = [decode(f) for f in finished(cloud(grains(position, mass)).frames(Asked(field="mass")))]
    header, body = frames[0]
    assert (header.count, header.total) == (fine.sum(), fine.sum())
    told = [json.loads(bytes(data))["not finite"] for h, data in frames if h.kind == "statistics"]
    assert told == [len(fine) - fine.sum()], "what is left out is said"
    seen = np.frombuffer(body, np.uint16).reshape(header.count, header.components // 2)[:, :3]
    place = np.asarray(header.origin) + np.asarray(header.extent) * seen / 65535
    wanted = position[sending_order(len(fine))].astype(np.float64)
    wanted = wanted[np.isfinite(wanted).all(axis=1)]
    within = np.abs(wanted) <= FARTHEST
    near = np.abs(place - wanted) <= np.asarray(header.extent) / 30000 + np.abs(wanted) * 2**-22
    assert (near | ~within).all()
    assert bool(header.flags & FLAGS["clamped"]) == bool((np.abs(position[fine]) > FARTHEST).any())


@pytest.mark.parametrize("shape", [(4, 6), (3, 4, 5)])
def test_values_of_fields_that_are_not_finite_are_counted(shape: tuple[int, ...]) -> None:
    field = np.ones(shape, np.float32)
    scene = FieldScene(shape, "cpu", {"t": lambda: field}, {}, lambda: (1, 1.0))
    for place, wanted in ((None, 0), (3, 1), (7, 2)):
        if place is not None:
            field.reshape(-1)[place] = np.nan
        header, told = decode(finished(scene.frames(Asked(field="t")))[-1])
        assert (header.kind, json.loads(bytes(told))["not finite"]) == ("statistics", wanted)


def test_no_elements_are_a_frame_of_none() -> None:
    header, rows = framed(cloud(grains(np.empty((0, 3)))))
    assert (header.count, len(rows)) == (0, 0)


def test_a_few_far_ones_leave_detail_to_the_others() -> None:
    near = np.random.default_rng(2).normal(size=5000)
    bounds, cut = without_outliers((float(near.min()), 1e9), near)
    assert cut
    assert bounds[1] < 20
    assert without_outliers((-4.0, 4.0), near) == ((-4.0, 4.0), False)


@pytest.mark.parametrize("far", [1.0, 4.0, 15.0, 17.0, 100.0])
@pytest.mark.parametrize("share", [0.0005, 0.01, 0.5])
@pytest.mark.parametrize("one_sided", [False, True])
def test_bounds_are_cut_where_nearly_all_are_in_a_sixteenth(far: float, share: float, one_sided: bool) -> None:
    rng = np.random.default_rng(1)
    sample = rng.uniform(-0.5, 0.5, 4000).astype(np.float32)
    some = rng.permutation(4000)[: max(2, int(4000 * share))]
    sample[some] = rng.uniform(0, far / 2, len(some)) * (1 if one_sided else rng.choice([-1, 1], len(some)))
    bounds = min(-0.5, 0.5 - far), max(0.5, far - 0.5)
    ordered = np.sort(sample)
    wide = bounds[1] - bounds[0] <= 16 * float(ordered[-5] - ordered[4])
    assert without_outliers(bounds, sample)[1] == (not wide)


def test_headings_are_right() -> None:
    rng = np.random.default_rng(3)
    heading = rng.normal(size=(4000, 3))
    heading[:6] = [[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]]
    _, rows = framed(cloud(grains(np.zeros((4000, 3)), velocity=heading)))
    u = rows[:, 4:6] / 65535 * 2 - 1
    z = 1 - np.abs(u).sum(axis=1)
    fold = (1 - np.abs(u[:, ::-1])) * np.where(u < 0, -1, 1)
    seen = np.column_stack([np.where(z[:, None] < 0, fold, u), z])
    wanted = heading[sending_order(4000)]
    cosine = (seen * wanted).sum(axis=1) / np.linalg.norm(seen, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.arccos(np.clip(cosine, -1, 1)).max() < 0.01


def test_the_number_of_the_order_is_that_of_what_is_sent() -> None:
    """It changes where other elements are sent, and only there: a page adds what follows to what it has."""
    array = sparks(50)
    scene = CloudScene(array, shown_by_default(array.record), {"flat": False}, lambda: (0, 0.0))
    position, numbers = np.asarray(array.position).copy(), list[int]()
    for gone in ((), (), (3,), (3,), (3, 7), (7,), (), ()):
        spoilt = position.copy()
        spoilt[list(gone)] = np.nan
        array.position = spoilt
        numbers.append(decode(finished(scene.frames(Asked(field="heat")))[0])[0].order)
    assert [b - a for a, b in pairwise(numbers)] == [0, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize("count", [4096, 50_000, 3_000_000])
def test_whole_shares_of_the_order_are_an_unbiased_sample(count: int) -> None:
    order = sending_order(count)
    assert np.array_equal(np.sort(order), np.arange(count))
    for wanted in (count // 3, min(20_000, count), count // 4):
        prefix = order[: whole_shares(wanted, count)]
        assert wanted - count / 256 - 1 <= len(prefix) <= max(wanted, 1)
        for cells in (prefix * 16 // count, prefix % 8, prefix // 7 % 8, (prefix ^ (prefix >> 6)) % 8):
            found = np.bincount(cells)
            expected = len(prefix) / len(found)
            # 15 degrees of freedom at most: above 45 with a probability of 8e-5
            assert ((found - expected) ** 2 / expected).sum() < 45


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_a_prefix_is_no_more_than_was_wanted(wanted: int, count: int) -> None:
    sent = whole_shares(wanted, count)
    assert sent <= min(wanted, count)
    assert sent == count if wanted >= count else wanted - sent <= 4096


def test_elements_that_join_change_few_places() -> None:
    before, after = sending_order(1000), sending_order(1010)
    assert [r for r in after if r < 1000] == before.tolist()


@pytest.mark.parametrize("device", ["cpu", "python"])
@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf, -np.inf])
def test_columns_are_bounded_in_lanes(device: str, spoilt: float | None) -> None:
    columns = np.random.default_rng(3).normal(size=(4, 37)).astype(np.float32)
    if spoilt is not None:
        columns[2, 20] = spoilt
    least, most = np.empty((4, 8), np.float32), np.empty((4, 8), np.float32)
    with lw.device(device):
        bound_columns(columns, least, most, grid=least.shape)
    for found, wanted in ((least.min(axis=1), columns.min(axis=1)), (most.max(axis=1), columns.max(axis=1))):
        if spoilt is not None:
            wanted[2] = np.nan
        assert np.array_equal(found, wanted, equal_nan=True)


def test_boxes_are_immutable() -> None:
    assert FrameBox().holding(((0, 1), (0, 1), (0, 0))).extent[:2] == (2, 2)


@pytest.mark.parametrize("shape", [(5, 7), (4, 5, 7)])
def test_slices_show_their_plane(shape: tuple[int, ...]) -> None:
    field = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    solid = np.zeros(shape, bool)
    solid[..., 0] = True
    scene = FieldScene(shape, "cpu", {"t": lambda: field}, {}, lambda: (1, 1.0), solid)
    deep = field.reshape((1,) * (3 - len(shape)) + shape)
    for axis in (0, 1, 2) if len(shape) == 3 else (2,):
        frames = finished(scene.frames(Asked(field="t", axis=axis, place=0.5, kinds=("slice",))))
        header, body = decode(frames[0])
        k = int(0.5 * deep.shape[2 - axis])
        plane = np.take(deep, k, axis=2 - axis)
        seen = np.frombuffer(body, np.uint8).reshape(header.total, header.first)
        assert seen.shape == plane.shape
        wall = np.take(solid.reshape(deep.shape), k, axis=2 - axis)
        assert (seen[wall] == 0).all()
        value = header.low + (header.high - header.low) * (seen - 1.0) / 254
        assert np.abs(value - plane)[~wall].max() <= (header.high - header.low) / 254 if (~wall).any() else True
        assert header.extent[axis] == 0


@pytest.mark.parametrize("odd", [(), (np.nan,), (np.inf, -np.inf), (np.nan, np.inf)], ids=str)
@pytest.mark.parametrize("most", [1e-39, 1e-6, 1e-3, 1.0, 6e4])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8", "i4", "u1", "?"])
def test_fields_of_every_type_have_their_own_range(kind: str, most: float, odd: tuple[float, ...]) -> None:
    """From the least to the largest value that is finite; what is not finite is solid."""
    whole = kind[0] != "f"
    field = np.linspace(0, 200 if whole else most, 256).astype(kind).reshape(16, 16)
    field.reshape(-1)[7 : 7 + len(odd)] = field[0, 7 : 7 + len(odd)] if whole else odd
    scene = FieldScene((16, 16), "cpu", {"t": lambda: field}, {}, lambda: (1, 1.0))
    header, body = decode(finished(scene.frames(Asked(field="t", kinds=("slice",))))[0])
    wide = field.astype(np.float64).reshape(-1)
    fine = np.isfinite(wide)
    least, largest = wide[fine].min(), wide[fine].max()
    np.testing.assert_allclose((header.low, header.high), (least, largest), rtol=1e-6, atol=1e-44)
    wanted = np.zeros(len(wide))
    wanted[fine] = (wide[fine] - least) / max(largest - least, 5e-324) * 254 + 1
    assert np.abs(np.frombuffer(body, np.uint8) - wanted).max() <= 1


@pytest.mark.parametrize("nothing", [np.nan, np.inf, -np.inf])
def test_a_frame_without_values_leaves_the_range_of_the_others_alone(nothing: float) -> None:
    fields = [np.full((4, 4), nothing), np.linspace(1000, 1001, 16).reshape(4, 4)]
    scene = FieldScene((4, 4), "cpu", {"t": lambda: fields[0]}, {}, lambda: (1, 1.0))
    ends = []
    for _ in range(2):
        header, _ = decode(finished(scene.frames(Asked(field="t", kinds=("slice",))))[0])
        ends.append((header.low, header.high))
        fields.reverse()
    assert ends == [(0, 1), (1000, 1001)]


def test_volumes_are_means_of_cubes(monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.live import fields as module

    monkeypatch.setattr(module, "VOLUME_BYTES", 30)
    field = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    scene = FieldScene((4, 6, 8), "cpu", {"t": lambda: field}, {}, lambda: (1, 1.0))
    header, body = decode(finished(scene.frames(Asked(field="t", kinds=("volume",))))[0])
    assert (header.first, header.total, header.count) == (4, 3, 2)
    small = field.reshape(2, 2, 3, 2, 4, 2).mean(axis=(1, 3, 5))
    seen = (np.frombuffer(body, np.uint8).reshape(small.shape) - 1.0) / 254 * (header.high - header.low) + header.low
    assert np.abs(seen - small).max() <= (header.high - header.low) / 254


def test_records_without_a_position_are_refused() -> None:
    @lw.record
    class Plain:
        mass: lw.f32

    assert list(shown_by_default(Grain.__record__).values) == ["mass", "|position|", "|velocity|"]
    with pytest.raises(InputError, match="a view of Plain needs a field position of three numbers; found mass"):
        shown_by_default(Plain.__record__)


def test_rows_are_made_on_gpus_too() -> None:
    """The kernels compile for CUDA, where no call of this machine would show it."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from lanewise.compiler.pipeline import build_program
    from lanewise.launch.executable import generated_texts
    from lanewise.live import quantise
    from lanewise.planning.plan import NEUTRAL, Plan
    from lanewise.runtime.nvrtc import compile_cubin
    from lanewise.sims.lbm.live import lengths

    column, rows, place = np.zeros(64, np.float32), np.zeros((64, 3), np.uint32), np.zeros(64, np.int32)
    words = [np.zeros(64, np.uint32) for _ in range(3)]
    block = np.zeros((4, 64), np.float32)
    uniforms = (lw.vec3(0.0), lw.vec3(1.0), 0.0, 1.0)
    for kernel, arguments, grid in (
        (quantise.quantise_points, (*[column] * 4, *words[:2], *uniforms), 64),
        (quantise.quantise_headings, (*[column] * 3, words[2]), 64),
        (quantise.bring_points, (place, *words[:2], rows[:, :2].copy()), 64),
        (quantise.bring_arrows, (place, *words, rows), 64),
        (quantise.bound_columns, (block, block[:, :8].copy(), block[:, :8].copy()), (4, 8)),
        (quantise.bound_groups, (block, place, place[:3].copy(), block[:, :8].copy(), block[:, :8].copy()), (1, 8)),
        (quantise.find_ranks, (column, column.copy()), 64),
        (quantise.take_logarithms, (column, 1.0), 64),
        (lengths, (np.zeros((64, 2), np.float32), column), 64),
    ):
        calls = kernel._calls
        program = build_program(
            calls.subject.reference(calls.given(arguments, {"grid": grid})), Plan(block=64).filled(NEUTRAL), "cuda"
        )
        for made, text in zip(program.kernels, generated_texts(program, "cuda", locations=False), strict=True):
            cubin = compile_cubin(text, made.name, "sm_90")
            assert "warning" not in cubin.log.lower()
            assert cubin.resources.registers > 0
