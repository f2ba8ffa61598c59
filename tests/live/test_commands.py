"""`--view` and what belongs to it on the command line, and `lanewise view FILE`."""

from __future__ import annotations

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import h5py
import numpy as np
import pytest

import lanewise as lw
from lanewise.cli.view import feed_of
from lanewise.live.feed import Feed
from lanewise.live.frame import decode
from lanewise.live.recording import read_recording
from lanewise.live.replay import RecordedFeed
from lanewise.live.scenes import finished
from lanewise.live.server import Server
from lanewise.support.errors import InputError
from tests.cli.command import Command
from tests.cli.conftest import lanewise  # noqa: F401  (a fixture)
from tests.live import browser

pytest.importorskip("websockets")
RUNS = {
    "gravity": ("gravity", "run", "--bodies", "50", "--steps", "20"),
    "boids": ("boids", "run", "--agents", "60", "--steps", "20"),
    "lbm": ("lbm", "run", "cavity", "--size", "12", "--steps", "40"),
}
KINDS = {"gravity": "points", "boids": "arrows", "lbm": "slice"}


@pytest.mark.parametrize("name", RUNS)
def test_runs_are_recorded_and_shown_again(lanewise: Command, name: str) -> None:  # noqa: F811
    done = lanewise(*RUNS[name], "--out", "run.h5", "--view", "--view-port", "0", "--view-record", "run.lwv", "--quiet")
    assert done.code == 0, done.err
    again = lanewise(*RUNS[name], "--view", "--view-port", "0", "--view-record", "other.lwv", "--quiet", "--profile")
    assert "│ view " in again.err
    assert "view: http://127.0.0.1:" in done.err
    assert "(from your machine: ssh -L " in done.err
    found = read_recording(Path("run.lwv"))
    assert found.whole
    last = found.frames(len(found.looks) - 1)
    assert decode(last.frames[0])[0].kind == KINDS[name]
    assert last.step == int(RUNS[name][-1])
    shown = feed_of(Path("run.h5"), 30)
    assert isinstance(shown, Feed)
    frames = finished(shown.scene.frames(shown.asked))
    assert decode(frames[0])[0].kind == KINDS[name]


def test_a_state_in_a_file_has_nothing_to_pause(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    options = ("--out", "run.h5", "--view", "--view-port", "0", "--view-record", "run.lwv")
    assert lanewise(*RUNS["gravity"], *options, "--quiet").code == 0
    readonly = list[bool]()

    class Begun(Server):
        def start(self) -> None:
            readonly.append(self.serving.readonly)
            raise InputError("it has begun")

    monkeypatch.setattr("lanewise.live.server.Server", Begun)
    assert [lanewise("view", file).err.strip() for file in ("run.h5", "run.lwv")] == ["error: it has begun"] * 2
    assert readonly == [True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--view-port", "9000"), "--view-port says how a view is, and needs --view"),
        (("--view-wait",), "--view-wait says how a view is, and needs --view"),
        (("--view-record", "a.lwv"), "--view-record says how a view is, and needs --view"),
        (("--view", "--view-host", "0.0.0.0"), "--view-host 0.0.0.0 would show the run to the network"),
        (("--view", "--view-record", "none/a.lwv"), "the folder none does not exist"),
        (("--view", "--view-port", "99999"), "the port of a view is 99999; wanted one from 0 to 65535"),
        (("--view", "--view-unsafe-host", "--view-host", "a" * 80), f"a view cannot be served at {'a' * 80}: "),
    ],
)
def test_what_cannot_be_is_refused(lanewise: Command, options: tuple[str, ...], message: str) -> None:  # noqa: F811
    refused = lanewise(*RUNS["gravity"], *options)
    assert refused.code == 2
    assert message in refused.err


def test_a_history_may_have_no_end(lanewise: Command) -> None:  # noqa: F811
    assert lanewise(*RUNS["gravity"], "--view", "--view-port", "0", "--view-history", "inf").code == 0


def test_files_that_show_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; wanted a recording, a checkpoint, bodies, agents or cand"):
        feed_of(tmp_path / "none.h5", 30)


def test_agents_of_a_table_are_shown(lanewise: Command) -> None:  # noqa: F811
    assert lanewise(*RUNS["boids"], "--dimension", "2", "--final", "plane.csv", "--quiet").code == 0
    shown = feed_of(Path("plane.csv"), 30)
    assert isinstance(shown, Feed)
    header, body = decode(finished(shown.scene.frames(shown.asked))[0])
    assert (header.kind, header.count) == ("arrows", 60)
    rows = np.frombuffer(body, "<u2").reshape(60, 6)[:, :3] / 65535 * header.extent + header.origin
    placed = np.genfromtxt("plane.csv", delimiter=",", names=True, skip_header=1)
    for k, name in enumerate(("px", "py", "pz")):
        seen, wanted = np.sort(rows[:, k]), np.sort(placed[name])
        assert seen == pytest.approx(wanted, abs=max(header.extent[k] / 65535, 1e-7))


def test_the_history_of_a_run_may_be_thinned(lanewise: Command) -> None:  # noqa: F811
    done = lanewise(*RUNS["gravity"], "--view", "--view-port", "0", "--view-history", "1", "--view-history-thin")
    assert done.code == 0, done.err


def test_ten_taken_ports_are_said(lanewise: Command) -> None:  # noqa: F811
    with ExitStack() as taken:
        first = 42_000
        for port in range(first, first + 10):
            one = taken.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):  # somebody else's is taken, too
                one.bind(("127.0.0.1", port))
                one.listen()
        with pytest.raises(InputError, match="no port from 42000 to 42009 is free for a view"):
            lw.view(np.zeros((3, 4), np.float32), port=first, quiet=True)
        view = ("--view", "--view-port", str(first), "--view-record", "run.lwv")
        refused = lanewise(*RUNS["gravity"], *view)
        assert (refused.code, "no port from 42000" in refused.err) == (2, True)
        assert not Path("run.lwv").exists()


def test_without_a_browser_its_tests_are_skipped_with_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    pytest.importorskip("playwright")
    with pytest.raises(pytest.skip.Exception, match="which is not installed: apt-get install chromium"):
        browser.found()


def test_the_trajectory_of_a_flock_plays(lanewise: Command) -> None:  # noqa: F811
    done = lanewise(*RUNS["boids"], "--every", "5", "--out", "run.h5", "--quiet")
    assert done.code == 0, done.err
    shown = feed_of(Path("run.h5"), 30)
    assert isinstance(shown, RecordedFeed)
    with h5py.File("run.h5") as file:
        steps, places = file["trajectory/step"][()], file["trajectory/position"][()]
    assert [shown.recording.frames(n).step for n in range(len(steps))] == steps.tolist() == [0, 5, 10, 15, 20]
    for n in (4, 1):
        moment = shown.recording.frames(n)
        header, body = decode(moment.frames[0])
        assert (header.kind, header.sequence, header.count, header.step) == ("arrows", n + 1, 60, steps[n])
        rows = np.frombuffer(body, "<u2").reshape(60, 6)[:, :3] / 65535 * header.extent + header.origin
        assert np.sort(rows, axis=0) == pytest.approx(np.sort(places[n], axis=0), abs=max(header.extent) / 65535)
    assert shown.kept(3).step == 10
