"""A card is taken for the part of a unit that needs it: in turn, by nobody else meanwhile; no byte depends on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lanewise.cli.main import app
from lanewise.io.claims import claimed, holder_of, lock_of
from lanewise.runtime import devices
from lanewise.sims.common import cards
from lanewise.sims.common.cards import TURN, Turn, a_card, is_wanted, waits
from lanewise.sims.units import compute, opened, read_scan, status
from lanewise.support.errors import DeviceError
from tests.sims.units.stand_in import environment, events
from tests.sims.units.test_scans import files, silent, small

PATIENCE = 90.0  # seconds


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


class Waiting:
    """A thread that asks for a card, keeps it until it is let go, and says when it has it."""

    def __init__(self, name: str, wanted: list[str], place: Path, order: list[tuple[str, str]]) -> None:
        self.let_go, self.mark = threading.Event(), place / f"{name}.card"
        before = len(list(place.glob(".*.lock")))

        def ask() -> None:
            with a_card(wanted, self.mark, place) as card:
                order.append((name, card))
                self.let_go.wait(PATIENCE)
                order.append((name, ""))

        self.thread = threading.Thread(target=ask)
        self.thread.start()
        until(lambda: len(list(place.glob(".*.lock"))) > before)


def test_who_asked_first_has_it_first(tmp_path: Path) -> None:
    """Two cards, and five who want one or either; nobody overtakes another one that waits for the same card."""
    order: list[tuple[str, str]] = []
    with a_card(["a"], None, tmp_path) as a, a_card(["a", "b"], None, tmp_path) as b:
        assert (a, b) == ("a", "b")
        people: list[Waiting] = []
        for name, wanted in (("1", ["a"]), ("2", ["a", "b"]), ("3", ["b"]), ("4", ["a"]), ("5", ["a", "b"])):
            people.append(Waiting(name, wanted, tmp_path, order))
            until(lambda mark=people[-1].mark: waits(mark))
        assert is_wanted("a", tmp_path)
        assert not order
    until(lambda: len(order) == 2)
    assert sorted(order) == [("1", "a"), ("2", "b")]
    for last, (name, card) in ((1, ("3", "b")), (0, ("4", "a")), (2, ("5", "b"))):
        people[last].let_go.set()
        until(lambda pair=(name, card): pair in order)
        assert len([n for n, c in order if c]) == int(name)
    for one in people:
        one.let_go.set()
        one.thread.join(PATIENCE)
        assert not waits(one.mark)
    assert not list(tmp_path.iterdir())
    with pytest.raises(DeviceError, match="this machine has no GPU; wanted --device cpu"), a_card([]):
        pass


def test_who_must_wait_is_told_once(tmp_path: Path) -> None:
    told: list[str] = []
    with a_card(["a"], None, tmp_path, busy=lambda: told.append("no")):
        assert not told
        other = threading.Thread(target=lambda: _once(tmp_path, told))
        other.start()
        until(lambda: told)
    other.join(PATIENCE)
    assert told == ["busy", "has it"]


def _once(place: Path, told: list[str]) -> None:
    with a_card(["a"], None, place, busy=lambda: told.append("busy")):
        told.append("has it")


GONE = """
import os, signal, sys, threading
from pathlib import Path
from lanewise.sims.common.cards import a_card
place = Path(sys.argv[1])
with a_card(["a"], None, place):
    threading.Thread(target=lambda: a_card(["a"], place / "u.card", place).__enter__(), daemon=True).start()
    while len(list(place.glob(".*.lock"))) < 3:
        pass
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_dead_hold_nothing_and_wait_for_nothing(tmp_path: Path) -> None:
    """The claim, the ticket and the mark of a process that was killed."""
    env = environment(tmp_path)
    subprocess.run([sys.executable, "-c", GONE, str(tmp_path)], env=env, check=False)
    assert len(list(tmp_path.glob(".*.lock"))) == 3
    assert not is_wanted("a", tmp_path)
    assert not waits(tmp_path / "u.card")
    with a_card(["a"], tmp_path / "u.card", tmp_path) as card:
        assert card == "a"
    assert not list(tmp_path.glob(".*.lock"))


def test_ctrl_c_while_waiting_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_place", lambda: tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "before")
    turn = Turn()
    turn.share(["a"], tmp_path / "u.card")
    with claimed([tmp_path / "a"]):

        def press(seconds: float) -> None:
            assert waits(tmp_path / "u.card")
            raise KeyboardInterrupt

        with monkeypatch.context() as sleepless:
            sleepless.setattr(cards.time, "sleep", press)
            with pytest.raises(KeyboardInterrupt):
                turn.begin()
        assert [p.name for p in tmp_path.iterdir()] == [lock_of(tmp_path / "a").name]
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "before"
    turn.begin()
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "a"
    assert holder_of(tmp_path / "a") is not None
    turn.begin()  # it has one
    turn.end()
    turn.end()
    assert not list(tmp_path.iterdir())


RUNS = {
    "gravity": ("gravity", "run", "--bodies", "20", "--steps", "2"),
    "lbm": ("lbm", "run", "cavity", "--size", "80", "--steps", "2"),
    "boids": ("boids", "run", "--agents", "20", "--steps", "2"),
}


@pytest.mark.parametrize("resumed", [False, True])
@pytest.mark.parametrize("product", RUNS)
def test_no_unit_asks_for_a_gpu_before_its_turn(
    product: str, resumed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver shows the devices that are visible when it is asked first."""
    words = list(RUNS[product])
    if resumed:
        out = str(tmp_path / "a.h5")
        assert CliRunner().invoke(app, [*words, "--out", out, "--quiet"]).exit_code == 0
        words = [product, "run", "--resume", out, "--steps", "1"]
    order: list[str] = []
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: order.append("GPU") or ["none is wanted"])
    monkeypatch.setattr(Turn, "begin", lambda self: order.append("turn"))
    monkeypatch.setattr(TURN, "_cards", ("0",))
    said = CliRunner().invoke(app, [*words, "--device", "cuda", "--quiet"])
    assert isinstance(said.exception, DeviceError) or "none is wanted" in said.output
    assert order[:2] == ["turn", "GPU"]


def test_a_script_that_makes_bodies_has_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may use one for that."""
    (tmp_path / "ic.py").write_text("def bodies():\n    raise ValueError('it runs')\n")
    order: list[str] = []
    monkeypatch.setattr(Turn, "begin", lambda self: order.append("turn"))
    said = CliRunner().invoke(app, ["gravity", "run", "--ic", f"{tmp_path / 'ic.py'}:bodies", "--steps", "1"])
    assert "it runs" in f"{said.exception}{said.output}"
    assert order == ["turn"]


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


SEEDS = ("gravity", "--bodies", "60", "--steps", "40", "--scan", "seed=1..4")


def begin(env: dict[str, str], *words: object) -> subprocess.Popen[str]:
    """`lanewise units WORDS` where cards are stand-ins."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in the background ignore it
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.sims.units.stand_in", "units", *map(str, words)], env=env, cwd=env["TMPDIR"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    signal.signal(signal.SIGINT, before)
    return process


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What the same scan leaves without any cards."""
    from lanewise.sims.units import Scan, axis_of

    folder = tmp_path_factory.mktemp("alone") / "scan"
    with opened(folder, Scan(product="gravity", options=SEEDS[1:5], axes=(axis_of("seed=1..4"),))) as scan:
        compute(scan, folder, workers=2, say=silent)
    return files(folder)


def check_turns(seen: list[tuple[str, str]]) -> None:
    """Each card has one holder at a time, and what needs none is outside of that."""
    holders: dict[str, str] = {}
    for unit, what in seen:
        kind, _, card = what.partition(" on ")
        if kind == "begins":
            assert card not in holders, seen
            holders[card] = unit
        elif kind in ("ends", "dies"):
            assert holders.pop(card) == unit, seen
        else:
            assert unit not in holders.values() or what == "asks", seen
    assert not holders


@pytest.mark.slow
@pytest.mark.parametrize(("cards", "workers"), [("a", 1), ("a", 2), ("a", 3), ("a,b", 2), ("a,b", 4)])
def test_units_take_turns(
    cards: str, workers: int, tmp_path: Path, started: list[subprocess.Popen[str]], wanted: dict[str, bytes]
) -> None:
    """With two workers a unit has the card until another one has read what it begins with: no time is measured, and
    without that the test does not end.
    """
    folder = tmp_path / "scan"
    env = environment(tmp_path, cards, "overlap 4" if workers == 2 and cards == "a" else "")
    started.append(begin(env, "run", folder, *SEEDS, "--workers", workers))
    _, said = started[-1].communicate(timeout=PATIENCE)
    assert started[-1].returncode == 0, said
    seen = events(tmp_path / "events")
    check_turns(seen)
    for n in range(1, 5):
        own = [what.partition(" on ")[0] for unit, what in seen if unit == f"unit-{n:06d}"]
        assert own == ["has read", "asks", "begins", "ends", "has a result"]
    assert files(folder) == wanted
    assert {what.partition(" on ")[2] for _, what in seen if what.startswith("begins")} <= set(cards.split(","))


@pytest.mark.slow
def test_a_holder_that_is_killed_gives_the_card_to_others(
    tmp_path: Path, started: list[subprocess.Popen[str]], wanted: dict[str, bytes]
) -> None:
    folder = tmp_path / "scan"
    started.append(begin(environment(tmp_path, "a", "kill"), "run", folder, *SEEDS, "--workers", 2))
    _, said = started[-1].communicate(timeout=PATIENCE)
    assert started[-1].returncode == 0, said
    seen = events(tmp_path / "events")
    check_turns(seen)
    assert [what for _, what in seen].count("dies on a") == 1
    assert files(folder) == wanted


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_units_that_wait_say_so_and_can_be_interrupted(
    tmp_path: Path, started: list[subprocess.Popen[str]], wanted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process has the only card."""
    folder, env = tmp_path / "scan", environment(tmp_path)
    monkeypatch.setattr(cards.tempfile, "gettempdir", lambda: str(tmp_path))
    with a_card(["a"]):
        process = begin(env, "run", folder, *SEEDS, "--workers", 2)
        started.append(process)

        def states() -> list[str]:
            return [s.state for s in status(read_scan(folder), folder)] if (folder / "units.json").exists() else []

        until(lambda: states() == ["waiting for a GPU"] * 2 + ["waiting"] * 2 or process.poll() is not None)
        said = CliRunner().invoke(app, ["units", "status", str(folder)]).stdout
        assert said.startswith("4 units of gravity: 2 waiting for a GPU, 2 waiting\n")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, said
        assert f"interrupted; continue with: lanewise units resume {folder}" in said
        assert states() == ["waiting"] * 4
        assert not is_wanted("a")
    assert not [w for _, w in events(tmp_path / "events") if w.startswith("begins")]
    started.append(begin(env, "resume", folder, "--workers", 2))
    started[-1].communicate(timeout=PATIENCE)
    assert files(folder) == wanted


def test_scans_without_a_gpu_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.sims.units import coordinator

    monkeypatch.setattr(coordinator, "visible_cards", list)
    refused: Any = pytest.raises(DeviceError, match="this machine has no GPU; wanted --device cpu")
    scan = small("seed=1,2", "device=cuda")
    with opened(tmp_path / "scan", scan) as there, refused:
        compute(there, tmp_path / "scan", say=silent)
