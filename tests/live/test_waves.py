"""A search watched: the best cells of the sky and the curve of 2F, whatever it was divided into; the files that it leaves."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanewise.cli.view import feed_of
from lanewise.live.feed import Feed
from lanewise.live.frame import decode
from lanewise.live.recording import read_recording
from lanewise.live.scenes import Asked, ChangingScene, finished
from lanewise.sims.waves.hierarchical import CANDIDATE
from lanewise.sims.waves.live import CELLS, FIELDS, SearchScene, UnitsScene
from lanewise.sims.waves.units import search_in_units
from lanewise.support.errors import InputError
from tests.cli.command import Command
from tests.cli.conftest import lanewise  # noqa: F401  (a fixture)
from tests.live.browser import lit, pixels, until
from tests.live.conftest import Opened
from tests.live.pictures import address
from tests.waves.units.data import START, a_job, make_files, start_search

SKY = ((1.0, 2.0), (-0.5, 0.5))


def rows_of(seed: int, count: int) -> Any:
    """Candidates on few places and frequencies, so that many share one."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(count, CANDIDATE)
    rows["alpha"] = 1.0 + rng.integers(0, 12, count) / 11
    rows["delta"] = -0.5 + rng.integers(0, 6, count) / 5
    rows["freq"] = 60 + rng.integers(0, 20, count) * 1e-5
    rows["significance"] = rng.integers(-2, 5, count) / 2
    rows["twoF"] = rng.integers(0, 400, count) / 8
    rows["count"] = rng.integers(0, 9, count)
    return rows


def told(frame: bytes) -> dict[str, Any]:
    header, body = decode(frame)
    assert header.kind == "statistics"
    return json.loads(bytes(body))


def points(frame: bytes) -> tuple[Any, Any]:
    """Places and values, sorted by place."""
    header, body = decode(frame)
    raw = np.frombuffer(body, "<u2").reshape(-1, 4) / 65535
    places = np.array(header.origin) + raw[:, :3] * header.extent
    values = header.low + raw[:, 3] * (header.high - header.low)
    order = np.lexsort((places[:, 1].round(3), places[:, 0].round(3)))
    return places[order], values[order]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 200), st.integers(1, 7), st.sampled_from(list(FIELDS)))
def test_the_best_of_each_place_is_seen_however_a_search_is_divided(
    seed: int, count: int, parts: int, field: str
) -> None:
    rows = rows_of(seed, count)
    scene = SearchScene(SKY, parts)
    shuffled = np.random.default_rng(seed + 1).permutation(rows)
    for part in np.array_split(shuffled, parts):
        scene.add(1, part)
    made = finished(scene.frames(Asked(field=field)))
    best: dict[tuple[float, float], tuple[float, ...]] = {}
    for r in rows:
        key, value = (r["alpha"], r["delta"]), (r["significance"], r["twoF"])
        best[key] = max(best.get(key, (-9.0, -9.0)), value)
    places, values = points(made[0])
    wanted = np.array(sorted(best))
    assert places[:, :2] == pytest.approx(wanted, abs=3e-5)
    if field != "number count":  # of equal ones any is taken
        k = {"mean 2F": 1, "significance": 0}[field]
        assert values == pytest.approx([best[tuple(w)][k] for w in wanted], abs=1e-3)
    curve = told(made[1])["curve"]
    low, high = curve["x"]
    width = (high - low) / len(curve["y"])
    largest = np.zeros(len(curve["y"]))
    np.maximum.at(largest, ((rows["freq"] - low) / width).astype(int), rows["twoF"])
    assert curve["y"] == pytest.approx(largest, abs=1e-3)
    assert (scene.moment[0], told(made[1])["maps"]) == (parts, f"{parts} of {parts}")


def test_a_picked_place_has_its_candidate() -> None:
    scene = SearchScene(SKY)
    rows = rows_of(3, 1)
    scene.add(1, rows)
    assert scene.picked(0) == dict(zip(CANDIDATE.names or (), rows[0].tolist(), strict=True))
    assert scene.picked(1) == {}
    assert scene.picked(-1) == {}


def test_frames_have_an_end_and_few_are_needed() -> None:
    """As many points as cells, before the first none."""
    scene = SearchScene(SKY, 2)
    assert decode(finished(scene.frames(Asked(field="mean 2F")))[0])[0].count == 0
    rows = np.zeros(100_000, CANDIDATE)
    rng = np.random.default_rng(1)
    rows["alpha"], rows["delta"] = rng.uniform(0.9, 2.1, 100_000), rng.uniform(-0.6, 0.6, 100_000)
    scene.add(1, rows)
    header = decode(finished(scene.frames(Asked(field="mean 2F")))[0])[0]
    assert header.count <= CELLS[0] * CELLS[1]
    assert decode(finished(scene.frames(Asked(field="mean 2F", points=10)))[0])[0].count == 10


@pytest.fixture(scope="module")
def pattern(tmp_path_factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("erfa")
    return make_files(tmp_path_factory.mktemp("sfts"))


def test_a_search_that_is_watched_finds_the_same(lanewise: Command, pattern: str) -> None:  # noqa: F811
    pytest.importorskip("websockets")
    command = (
        "waves", "run", "--device", "numpy", "--sfts", pattern, "--freq", "60.0099", "--band", "0.00025", "--f1dot",
        "-2e-10,8e-10", "--ref-time", str(START + 90_000), "--stack", "36000", "--residuals", "3", "--patch", "0.02",
        "--threshold", "4", "--ephemeris", "EPV00", "--candidates", "40", "--sky", "isotropic:0.02@2.0,0.3,0.02", "--quiet",
    )  # fmt: skip
    alone = lanewise(*command, "--out", "alone.csv")
    seen = lanewise(*command, "--out", "seen.csv", "--view", "--view-port", "0", "--view-record", "seen.lwv")
    assert (alone.code, seen.code) == (0, 0), alone.err + seen.err
    assert Path("alone.csv").read_bytes() == Path("seen.csv").read_bytes()
    assert "view: http://127.0.0.1:" in seen.err
    found = read_recording(Path("seen.lwv"))
    last = found.frames(len(found.looks) - 1)
    maps, of, every = told(last.frames[1])["maps"].partition(" of ")
    assert (of, last.step) == (" of ", int(maps))
    assert maps == every
    header, _ = decode(last.frames[0])
    assert header.kind == "points"
    assert header.count > 20
    listed = feed_of(Path("seen.csv"), 30)
    assert isinstance(listed, Feed)
    assert not isinstance(listed.scene, ChangingScene)
    assert decode(finished(listed.scene.frames(listed.asked))[0])[0].count > 10


def test_the_checkpoints_of_a_search_are_seen_as_they_come(pattern: str, tmp_path: Path) -> None:
    job, folder = a_job(pattern), tmp_path / "top.csv.units"
    with pytest.raises(
        InputError, match="no such file; wanted a recording, a checkpoint, bodies, agents or candidates"
    ):
        feed_of(folder, 30)
    folder.mkdir()
    with pytest.raises(InputError, match="there are no checkpoints of a search to show; wanted the folder"):
        feed_of(folder, 30)
    search_in_units(job, folder, units=3)
    shown = feed_of(folder, 30)
    assert isinstance(shown, Feed)
    scene = shown.scene
    assert isinstance(scene, UnitsScene)
    assert isinstance(scene, ChangingScene), "files are looked at again"
    assert (scene.moment[0], scene.changed) == (2 * len(job.sky), False)
    whole = decode(finished(scene.frames(shown.asked))[0])[0].count
    for path in sorted(folder.glob("unit-*.json"))[1:]:
        path.unlink()
    assert scene.changed
    assert 0 < decode(finished(scene.frames(shown.asked))[0])[0].count < whole
    for path in folder.glob("unit-*.json"):
        path.unlink()
    assert not scene.changed, "the search has ended: what it had found stays"
    assert decode(finished(scene.frames(shown.asked))[0])[0].count > 0


def test_a_table_without_candidates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("freq,alpha,delta,twoF\n")
    with pytest.raises(InputError, match="there are no templates below the names of the columns"):
        feed_of(path, 30)


@pytest.mark.slow
@pytest.mark.browser
def test_a_search_is_watched_paused_picked_and_ended(opened: Opened, pattern: str, tmp_path: Path) -> None:
    sky = tmp_path / "sky.txt"
    sky.write_text("".join(f"{2 + 0.02 * k} {0.3 + 0.02 * n}\n" for k in range(20) for n in range(20)))
    out = tmp_path / "top.csv"
    # whoever starts this in the background may ignore Ctrl-C, which children inherit
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = start_search(pattern, sky, out, "--view", "--view-port", 0, "--view-wait", "--units", 4)
    signal.signal(signal.SIGINT, before)
    try:
        page = opened(address(process))
        until(page, "lanewise.run.step > 2 && lanewise.run.curve", 60)
        page.get_by_role("button", name="Pause").click()
        until(page, "lanewise.run.paused")
        page.wait_for_timeout(300)
        held = page.locator("#moment").inner_text()
        page.evaluate("lanewise.actions.set('axes', false)")
        assert lit(pixels(page)).any()
        rows, columns = np.nonzero(lit(pixels(page)))
        page.mouse.click(int(columns[0]), int(rows[0]))
        page.locator("#picked").get_by_text("significance").wait_for()
        page.wait_for_timeout(300)
        assert page.locator("#moment").inner_text() == held
        page.locator("#scene").focus()
        page.keyboard.press("ArrowRight")
        until(page, f"document.getElementById('moment').textContent !== {json.dumps(held)}")
        process.send_signal(signal.SIGINT)
        page.get_by_text("the run has ended").wait_for()
        _, said = process.communicate(timeout=20)
        assert "the same command with --resume continues it" in said
    finally:
        process.kill()
    done = start_search(pattern, sky, out, "--resume")
    done.communicate(timeout=120)
    assert (done.returncode, out.exists()) == (0, True)
