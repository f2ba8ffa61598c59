"""Colours by the logarithm of values, or by their rank: in frames, messages, recordings, and on the page."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import lanewise as lw
from lanewise.cli.view import feed_of
from lanewise.live.clouds import CloudScene, shown_by_default
from lanewise.live.feed import Feed
from lanewise.live.fields import FieldScene
from lanewise.live.frame import FrameHeader, decode
from lanewise.live.protocol import FLAGS, SCALES
from lanewise.live.recording import read_recording
from lanewise.live.replay import RecordedFeed
from lanewise.live.scales import LEAST, RANKED
from lanewise.live.scenes import Asked, Scene, finished
from lanewise.live.server import Server, Serving
from lanewise.sims.waves.hierarchical import CANDIDATE
from lanewise.sims.waves.live import scene_of_rows
from lanewise.support.errors import InputError
from tests.cli.command import Command
from tests.cli.conftest import lanewise  # noqa: F401  (a fixture)
from tests.live.browser import until
from tests.live.conftest import Opened
from tests.live.sparks import Spark
from tests.live.talk import talking

pytest.importorskip("websockets")
VALUE = st.one_of(st.floats(-(2**60), 2**60, width=32), st.sampled_from([0.0, 1.0, 1e-20, -1.0, float("nan")]))
VALUES = st.lists(VALUE, min_size=1, max_size=60)


def wanted(values: NDArray[Any], scale: str) -> NDArray[np.float64]:
    """Fractions of finite values, in float64."""
    v = values.astype(np.float64)
    if scale == "rank":
        less, equal = v[:, None] > v, v[:, None] == v
        return (less.sum(axis=1) + equal.sum(axis=1) / 2) / len(v)
    if scale == "log":
        positive = v[v >= LEAST]
        v = np.log(np.maximum(v, positive.min() if len(positive) else LEAST))
    low, high = v.min(), v.max()
    return (v - low) / (high - low) if high > low else np.zeros(len(v))


def seen(scene: Scene, **asked: Any) -> tuple[FrameHeader, memoryview, dict[str, Any]]:
    """The first frame, and what is told with it."""
    frames = [decode(f) for f in finished(scene.frames(Asked(field=scene.about["fields"][0], **asked)))]
    told = [json.loads(bytes(body)) for header, body in frames if header.kind == "statistics"]
    return *frames[0], {name: x for some in told for name, x in some.items()}


def sparks(heat: Any) -> Any:
    heat = np.asarray(heat, np.float32)
    place = np.arange(3 * len(heat), dtype=np.float32).reshape(-1, 3)
    return Spark.array(position=place, velocity=place, heat=heat)


def cloud(heat: Any) -> CloudScene:
    array = sparks(heat)
    return CloudScene(array, shown_by_default(array.record), {}, lambda: (0, 0.0)).coloured("heat")


@settings(deadline=None)
@given(VALUES, st.sampled_from(SCALES))
def test_clouds_have_their_values_by_scale(heat: list[float], scale: str) -> None:
    values = np.array(heat, np.float32)
    fine = values[np.isfinite(values)]
    header, body, told = seen(cloud(values), scale=scale)
    assert header.count == len(fine), "no value is left out for its sign"
    assert SCALES[header.scale] == scale or not len(fine)
    if not len(fine):
        return
    rows = np.frombuffer(body, "<u2").reshape(header.count, -1)
    places = np.round(rows[:, 0] / 65535 * header.extent[0] + header.origin[0]).astype(int) // 3
    # a float32 has 24 bits, and a logarithm of them some less
    assert rows[:, 3] == pytest.approx(65535 * wanted(fine, scale)[np.searchsorted(_finite(values), places)], abs=2)
    if scale == "log":
        positive = fine[fine >= LEAST]
        assert told["colours"]["below"] == len(fine) - len(positive)
        ends = (float(positive.min()), float(positive.max())) if len(positive) else (0.0, 0.0)
        assert (header.low, header.high) == ends
    else:
        assert (header.low, header.high) == (fine.min(), fine.max())
    if scale == "rank":
        assert told["colours"]["middle"] == np.sort(fine)[len(fine) // 2]


def _finite(values: NDArray[Any]) -> NDArray[np.intp]:
    return np.flatnonzero(np.isfinite(values))


@settings(deadline=None)
@given(VALUES, st.sampled_from(SCALES), st.sampled_from([0.5, 1.0, 2.0**60]), st.sampled_from([2.0, 2.0**61]))
def test_frames_say_on_which_sides_values_lie_outside(values: list[float], scale: str, low: float, high: float) -> None:
    heat = np.array(values, np.float32)
    fine = heat[np.isfinite(heat)]
    if scale == "log":
        fine = fine[fine >= LEAST]
    for scene in (cloud(heat), FieldScene((1, len(heat)), "cpu", {"t": lambda: heat[None]}, {}, lambda: (0, 0.0))):
        header, _, _ = seen(scene, scale=scale, low=low, high=high)
        if header.count:
            found = [bool(header.flags & FLAGS[name]) for name in ("under", "over")]
            assert found == [bool((fine < low).any()), bool((fine > high).any())]
        assert not seen(scene, scale=scale)[0].flags & (FLAGS["under"] | FLAGS["over"])


@settings(deadline=None)
@given(VALUES, st.sampled_from(SCALES), st.sampled_from(["f4", "f8"]))
def test_slices_have_their_values_by_scale(values: list[float], scale: str, kind: str) -> None:
    field = np.array(values, np.float32).astype(kind)[None]
    wall = np.arange(field.size)[None] % 5 == 3
    scene = FieldScene(field.shape, "cpu", {"t": lambda: field}, {}, lambda: (0, 0.0), wall)
    header, body, told = seen(scene, scale=scale)
    assert SCALES[header.scale] == scale
    made, fluid = np.frombuffer(body, np.uint8), np.isfinite(field[0]) & ~wall[0]
    assert (made[~fluid] == 0).all()
    assert (made[fluid] > 0).all()
    if scale == "linear" or not fluid.any():
        return
    assert made[fluid] == pytest.approx(1 + 254 * wanted(field[0][fluid], scale), abs=1)
    if scale == "log":
        assert told["colours"]["below"] == (field[0][fluid] < LEAST).sum()


@pytest.mark.parametrize("count", [1, RANKED, RANKED + 1, 3 * RANKED + 5])
def test_ranks_of_many_are_those_of_a_sample(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count).astype(np.float32) ** 3
    header, body, _ = seen(cloud(values), scale="rank")
    ranks = np.sort(np.frombuffer(body, "<u2").reshape(header.count, -1)[:, 3]) / 65535
    even = (np.arange(count) + 0.5) / count
    assert np.abs(ranks - even).max() < (1e-4 if count <= RANKED else 0.012)


def test_a_requested_range_limits_ranks() -> None:
    header, body, _ = seen(cloud(np.arange(100)), scale="rank", low=20.0, high=39.0)
    ranks = np.sort(np.frombuffer(body, "<u2").reshape(100, -1)[:, 3])
    assert (header.low, header.high) == (20, 39)
    assert (ranks[:20] == 0).all()
    assert (ranks[40:] == 65535).all()
    assert np.diff(ranks[20:40]) == pytest.approx(65535 / 20, abs=1)


@pytest.mark.parametrize("scale", SCALES)
def test_searches_have_their_values_by_scale(scale: str) -> None:
    rows = np.zeros(30, CANDIDATE)
    rows["alpha"], rows["delta"] = np.arange(30) / 100, np.arange(30) % 7 / 100
    rows["twoF"], rows["freq"] = np.exp(np.arange(30) / 3), 60.0
    header, body, _ = seen(scene_of_rows(rows, "a table"), scale=scale)
    made = np.sort(np.frombuffer(body, "<u2").reshape(-1, 4)[:, 3])
    assert SCALES[header.scale] == scale
    assert made == pytest.approx(65535 * np.sort(wanted(rows["twoF"], scale)), abs=1)


def test_viewers_choose_the_scale_and_are_told_why_not() -> None:
    server = Server(feed := Feed(cloud([-1, 0, 1, 10])), Serving(port=0))
    server.start()
    try:
        feed.make()
        with talking(server) as talk:
            assert talk.text("state", scale="linear")
            talk.say("scale", name="log")
            assert talk.text("state", scale="log", range=[None, None])
            talk.say("scale", name="cubic")
            assert "no scale 'cubic'; wanted one of linear, log, rank" in talk.text("error")["text"]
            assert talk.text("state", scale="log"), "the page shows again what holds"
            talk.say("range", low=0, high=5)
            assert "a logarithmic scale has no range from 0 to 5; wanted one above 0" in talk.text("error")["text"]
            assert talk.text("state", range=[None, None])
            talk.say("range", low=0.5, high=5)
            assert talk.text("state", scale="log", range=[0.5, 5])
            talk.say("scale", name="rank")
            assert talk.text("state", scale="rank", range=[None, None])
    finally:
        server.stop()


def test_a_view_begins_with_its_scale(tmp_path: Path) -> None:
    array = sparks([0, 1, 2, 3])
    with pytest.raises(InputError, match="unknown scale 'ranks'; did you mean 'rank'"):
        lw.view(array, scale="ranks", port=0, quiet=True)
    with lw.view(array, colour="heat", scale="log", port=0, quiet=True, record=tmp_path / "a.lwv"):
        pass
    found = read_recording(tmp_path / "a.lwv").frames(0).frames
    header, _ = decode(found[0])
    assert (SCALES[header.scale], header.low, header.high) == ("log", 1, 3)
    assert {"below": 1} in [json.loads(bytes(decode(f)[1])).get("colours") for f in found[1:]]


def test_the_scale_of_a_run_is_recorded_and_replayed(lanewise: Command) -> None:  # noqa: F811
    run = ("gravity", "run", "--bodies", "50", "--steps", "5", "--out", "run.h5", "--quiet")
    refused = lanewise(*run, "--view", "--view-scale", "log2")
    assert refused.code == 2
    assert "no scale 'log2'; wanted one of linear, log, rank" in refused.err
    assert lanewise(*run, "--view", "--view-port", "0", "--view-scale", "rank", "--view-record", "a.lwv").code == 0
    shown = feed_of(Path("a.lwv"), 30)
    assert isinstance(shown, RecordedFeed)
    newest = shown.newest()
    assert newest is not None
    assert SCALES[decode(newest.frames[0])[0].scale] == "rank"
    refused = lanewise("view", "a.lwv", "--scale", "log")
    assert refused.code == 2
    assert "have the scale that they were made with; leave --scale out, or record with --view-scale" in refused.err


def test_a_trajectory_is_coloured_as_requested(lanewise: Command) -> None:  # noqa: F811
    run = ("boids", "run", "--agents", "60", "--steps", "20", "--every", "10", "--out", "run.h5", "--quiet")
    assert lanewise(*run).code == 0
    shown = feed_of(Path("run.h5"), 30)
    assert isinstance(shown, RecordedFeed)
    assert shown.scene.about["fields"] == ["speed", "climb"]
    server = Server(shown, Serving(port=0))
    server.start()
    try:
        with talking(server) as talk:
            linear, _ = talk.frame()
            talk.say("scale", name="log")
            logarithmic, _ = talk.frame()
            assert (linear.scale, logarithmic.scale) == (0, 1)
            assert linear.sequence == logarithmic.sequence
            talk.say("colour", field="climb")
            assert talk.text("state", field="climb", scale="log")
            while (now := talk.frame()[0]).low == logarithmic.low:
                pass
            assert now.scale == 1
    finally:
        server.stop()


# what is written over the picture since the last time it was drawn
WORDS = """
const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
  (window.words ??= []).push(text);
  fillText.call(this, text, ...rest);
};
CanvasRenderingContext2D.prototype.clearRect = function (...rest) {
  window.words = [];
  clearRect.call(this, ...rest);
};
"""


@pytest.mark.browser
def test_the_page_has_a_control_and_a_key_of_scales(opened: Opened) -> None:
    heat = np.array([-3.0, 0.0, 0.01, 1.0, 2.0, 100.0])
    with lw.view(sparks(heat), colour="heat", port=0, quiet=True) as view:
        page = opened(view.url, script=WORDS)

        def written(*wanted: str) -> None:
            until(page, f"{json.dumps(wanted)}.every(w => words.includes(w))")

        def redrawn(scale: str, low: float) -> None:
            view.update()
            number = SCALES.index(scale)
            until(page, f"(c => c.scale === {number} && Math.abs(c.low - {low}) < 1e-6)(lanewise.scene.cloud())")

        page.get_by_label("Scale").select_option("log")
        until(page, "lanewise.run.scale === 'log'")
        redrawn("log", 0.01)
        written("heat, logarithmic", "2 at or below 0: lowest colour", "0.01", "1", "100")
        page.locator("#scene").focus()
        page.keyboard.press("l")
        until(page, "lanewise.run.scale === 'rank'")
        redrawn("rank", -3)
        written("heat, by rank", "−3", "1", "100")
        assert page.get_by_label("Scale").input_value() == "rank"
        page.keyboard.press("l")
        until(page, "lanewise.run.scale === 'linear'")
        redrawn("linear", -3)
        written("heat", "−3", "100")
        page.get_by_label("From", exact=True).fill("-1")
        page.get_by_label("From", exact=True).press("Enter")
        page.get_by_label("To", exact=True).fill("50")
        page.get_by_label("To", exact=True).press("Enter")
        until(page, "String(lanewise.run.range) === '-1,50'")
        redrawn("linear", -1)
        page.evaluate("lanewise.feed.send({ do: 'range', low: 0, high: 1 })")
        until(page, "lanewise.settings.low === 0")
        page.get_by_label("Scale").select_option("log")
        until(page, "lanewise.run.scale === 'log'")
        assert page.get_by_label("From", exact=True).input_value() == "", "another scale has its own range"
        page.evaluate("lanewise.actions.set('low', -1); lanewise.actions.set('high', 9)")
        page.get_by_text("a logarithmic scale has no range from -1 to 9").wait_for()
        until(page, "lanewise.settings.low === null")


@pytest.mark.slow
@pytest.mark.browser
def test_what_lies_outside_the_range_is_said_and_the_range_is_fitted_again(opened: Opened) -> None:
    """The automatic range holds all values so far, until the button or the key has it begin anew."""
    array = sparks([-3.0, 0.0, 1.0, 100.0])
    with lw.view(array, colour="heat", port=0, quiet=True) as view:
        page = opened(view.url, script=WORDS)

        def holds(expression: str) -> None:
            end = time.monotonic() + 20
            while not page.evaluate(expression):
                assert time.monotonic() < end, expression
                view.update()
                page.wait_for_timeout(40)

        def written(*wanted: str) -> None:
            holds(f"{json.dumps(wanted)}.every(w => window.words?.includes(w))")

        written("−3", "100")
        array.heat = np.float32([2, 3, 4, 5])
        holds(f"lanewise.run.step > {view._step}")
        written("−3", "100")
        page.get_by_role("button", name="Fit colours").click()
        while not view._feed.asked.fitted:
            page.wait_for_timeout(20)
        written("2", "5")
        page.evaluate("lanewise.actions.set('low', 3); lanewise.actions.set('high', 9)")
        until(page, "String(lanewise.run.range) === '3,9'")
        written("≤ 3", "9")
        page.evaluate("lanewise.actions.set('low', 1); lanewise.actions.set('high', 4)")
        until(page, "String(lanewise.run.range) === '1,4'")
        written("1", "≥ 4")
        page.locator("#scene").focus()
        page.keyboard.press("v")
        until(page, "String(lanewise.run.range) === ','")
        written("2", "5")
        assert page.get_by_label("From", exact=True).input_value() == ""
