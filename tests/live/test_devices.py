"""Frames of every device: those of the CPU, of the state that was seen."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.live import clouds
from lanewise.live.clouds import CloudScene, Shown
from lanewise.live.feed import Feed
from lanewise.live.fields import FieldScene
from lanewise.live.frame import FrameHeader, decode
from lanewise.live.scenes import Asked, LaterFrames, finished
from lanewise.runtime.memory import array_module, to_host
from lanewise.support.errors import DeviceError
from tests.live.sparks import Spark

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]
VALUES = {"heat": "e.heat", "speed": "length(e.velocity)"}
POINTS = Shown(position="e.position", values=VALUES)
ARROWS = Shown(position="e.position", values=VALUES, heading="e.velocity")


def sparks(device: str, count: int, spoilt: int = 0) -> Any:
    rng = np.random.default_rng(1)
    position, velocity = rng.normal(size=(2, count, 3))
    position[rng.permutation(count)[:spoilt], 1] = np.nan
    with lw.device(device):
        return Spark.array(position=position, heat=rng.random(count), velocity=velocity)


def cloud(array: Any, shown: Shown = ARROWS, rows: Any = None) -> CloudScene:
    return CloudScene(array, shown, {}, lambda: (3, 0.5), lambda: rows)


def rows_of(frame: Any) -> tuple[FrameHeader, Any]:
    header, body = decode(frame)
    return header, np.frombuffer(body, np.uint16).reshape(header.count, header.components // 2).astype(int)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shown", [POINTS, ARROWS])
@pytest.mark.parametrize(("count", "spoilt", "points"), [
    (1, 0, 9), (300, 0, 1000), (5000, 0, 5000), (5000, 40, 5000), (70_000, 0, 30_000), (50, 50, 9),
])  # fmt: skip
def test_frames_are_those_of_the_cpu(device: str, shown: Shown, count: int, spoilt: int, points: int) -> None:
    scenes = [cloud(sparks(d, count, spoilt), shown) for d in ("cpu", device)]
    for field in VALUES:
        asked = Asked(field=field, points=points)
        (wanted, first), (header, rows) = (rows_of(finished(s.frames(asked))[0]) for s in scenes)
        for name in ("kind", "flags", "count", "total", "order", "step", "time", "origin", "extent"):
            assert getattr(header, name) == getattr(wanted, name)
        assert np.allclose([header.low, header.high], [wanted.low, wanted.high], rtol=1e-6)
        assert header.count <= points
        assert np.abs(rows - first).max(initial=0) <= 1, "rounding, where products and sums are contracted"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("fails", ["the copy", "quantise_points", "bound_columns", "brought"])
def test_memory_of_frames_that_fail_is_used_again(device: str, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, asked = cloud(sparks(device, 300)), Asked(field="heat")
    wanted = finished(scene.frames(asked))
    (memory,) = scene._aside._snapshots

    def failing(*_: Any, **__: Any) -> None:
        raise OSError("no such device")

    for _ in range(3):
        with monkeypatch.context() as patch:
            if fails == "the copy":
                patch.setitem(scene._looks, "heat", failing)
                with pytest.raises(OSError, match="no such device"):
                    scene.frames(asked)
                continue
            match fails:
                case "brought":
                    patch.setattr(scene._aside, "brought", failing)
                case "bound_columns":
                    patch.setattr(clouds, "_extremes", failing)
                case _:
                    patch.setattr(clouds, fails, failing)
            frames = scene.frames(asked)
            with pytest.raises(OSError, match="no such device"):
                finished(frames)
    assert finished(scene.frames(asked)) == wanted
    assert scene._aside._snapshots == [memory]


@pytest.mark.parametrize("device", DEVICES)
def test_reordered_memory_is_seen_by_rows(device: str) -> None:
    array = sparks(device, 3000)
    order = np.random.default_rng(5).permutation(3000)
    with lw.device(device):
        moved = Spark.array(**{n: to_host(getattr(array, n))[order] for n in
                               ("position", "heat", "velocity")})  # fmt: skip
    rows = array_module(device).asarray(order.astype(np.int32))
    asked = Asked(field="heat")
    plain, seen = (finished(s.frames(asked)) for s in (cloud(array), cloud(moved, rows=rows)))
    assert plain == seen


@pytest.mark.parametrize("device", DEVICES)
def test_a_record_that_has_gone_since_its_frame_is_picked_as_nothing(device: str) -> None:
    array = sparks(device, 50)
    rows = array_module(device).arange(50, dtype=np.int32)
    for left in (rows[:20], rows):
        shown = [rows]
        scene = CloudScene(array, ARROWS, {}, lambda: (3, 0.5), lambda shown=shown: shown[0])
        finished(scene.frames(Asked(field="heat")))
        shown[0] = left
        picks = [scene.picked(place) for place in range(50)]
        assert sum(bool(p) for p in picks) == len(left)
        assert {p["row"] for p in picks if p} == set(range(len(left)))


@pytest.mark.parametrize("device", DEVICES)
def test_frames_under_way_are_of_the_state_that_was_seen(device: str) -> None:
    """What is launched at once behind a look changes nothing of it."""

    @lw.elementwise
    def spoil(e: Spark):
        e.position = lw.vec3(7.0, 8.0, 9.0) - 3.0 * e.position
        e.heat = e.heat + 1.0
        e.velocity = lw.vec3(0.0, 0.0, 1.0)

    array, still = sparks(device, 200_000), sparks(device, 200_000)
    scene, other = cloud(array), cloud(still)
    spoil(array), spoil(still)  # it is compiled
    under_way = []
    for _ in range(4):
        frames = scene.frames(Asked(field="heat"))
        for _ in range(3):
            spoil(array)
        under_way.append((frames, finished(other.frames(Asked(field="heat")))))
        for _ in range(3):
            spoil(still)
    for frames, wanted in under_way:
        assert finished(frames) == wanted


@pytest.mark.parametrize("what", ["cloud", "field"])
def test_memory_that_a_view_lacks_is_said_before_it_is_taken(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scene: Any = cloud(sparks("cpu", 100_000))
    if what == "field":
        field = np.zeros((700, 1000), np.float32)
        scene = FieldScene(field.shape, "cpu", {"heat": lambda: field}, {}, lambda: (1, 1.0))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=5_000_000))
    total = 2 * 2_800_000 + (2 * 1_200_000 if what == "cloud" else 700_000)
    with pytest.raises(
        DeviceError, match=f"a view needs {total:,} bytes on 'cpu', and 5,000,000 are available: 2,800,000"
    ):
        scene.frames(Asked(field="heat"))
    assert not scene._aside._snapshots
    monkeypatch.undo()
    assert finished(scene.frames(Asked(field="heat")))


@pytest.mark.parametrize("device", DEVICES)
def test_a_look_waits_for_no_earlier_one(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame is left out where two are being made; the last one of a run never is."""
    monkeypatch.setattr("lanewise.live.feed.MOST_APART", 0.0)  # each look is due
    scene, goes_on, made = cloud(sparks(device, 3000)), threading.Event(), list[int]()

    class Held:
        about, moment, picked = scene.about, scene.moment, scene.picked

        def frames(self, asked: Asked) -> Any:
            (later,) = scene.frames(asked)
            made.append(len(made))

            def held() -> Any:
                assert goes_on.wait(20)
                return later()

            return [LaterFrames(held)]

    feed = Feed(Held(), rate=1e6)
    feed.watch(1)
    for step in range(50):
        feed.look(step)
    assert len(made) == 2
    assert len(scene._aside._snapshots) == 2
    assert feed.newest() is None
    goes_on.set()
    feed.flush()
    feed.look(50)
    feed.end()
    assert [m.sequence for m in feed.history] == [1, 2, 3, 4]
    assert len(scene._aside._snapshots) == 2


@pytest.mark.parametrize("device", DEVICES)
def test_a_feed_keeps_what_was_under_way_in_order(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.live.feed.MOST_APART", 0.0)  # each look is due
    array = sparks(device, 20_000)
    step = 0
    scene = CloudScene(array, ARROWS, {}, lambda: (step, float(step)))
    feed = Feed(scene, rate=1e6)
    feed.watch(1)
    for step in range(1, 40):
        feed.look(step)
    feed.end()
    kept = list(feed.history)
    assert [m.sequence for m in kept] == list(range(1, feed.made + 1))
    assert kept[-1].step == 39
    assert [m.step for m in kept] == sorted(m.step for m in kept)
    assert all(decode(f)[0].sequence == m.sequence for m in kept for f in m.frames)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", [(30, 40), (12, 20, 30)])
def test_slices_are_those_of_the_cpu(device: str, shape: tuple[int, ...]) -> None:
    field = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    made = []
    for where in ("cpu", device):
        there = array_module(where).asarray(field)
        scene = FieldScene(shape, where, {"t": lambda there=there: there}, {}, lambda: (1, 1.0))
        made.append([decode(f) for f in finished(scene.frames(Asked(field="t")))])
    for (wanted, first), (header, body) in zip(*made, strict=True):
        assert header == wanted
        assert np.abs(np.frombuffer(body, np.uint8).astype(int) - np.frombuffer(first, np.uint8)).max() <= 1


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("spoilt", [None, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int32, np.bool_])
def test_values_of_slices_are_fractions_of_their_range(device: str, spoilt: float | None, kind: Any) -> None:
    field = np.random.default_rng(1).integers(0, 2 if kind is np.bool_ else 9, size=(30, 40)).astype(kind)
    fine = np.ones(field.shape, np.bool_)
    if spoilt is not None and kind in (np.float32, np.float64):
        field[3, 4], fine[3, 4] = spoilt, False
    there = array_module(device).asarray(field)
    scene = FieldScene(field.shape, device, {"t": lambda: there}, {}, lambda: (1, 1.0))
    asked = Asked(field="t", low=0.0, high=8.0)
    header, body = decode(finished(scene.frames(asked))[0])
    seen = np.frombuffer(body, np.uint8).reshape(header.total, header.first)
    assert (seen[~fine] == 0).all()
    assert np.array_equal(seen[fine], (field[fine].astype(float) * 254 / 8 + 1.5).astype(np.uint8))
