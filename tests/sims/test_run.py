"""Runs of any product: what is due at which step, what they write, what they say after Ctrl-C."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lanewise.sims.common.frame import _how_to_go_on  # pyright: ignore[reportPrivateUsage]
from lanewise.sims.common.run import Checkpoints, Every, Run
from lanewise.support.errors import InputError

EVENTS = tuple[str, int]


@dataclass
class Counting:
    """Steps that are counted; `broken`: the step from which the state is refused."""

    step: int = 0
    broken: int = 1 << 30
    profile: Any = None
    events: list[EVENTS] = field(default_factory=list[EVENTS])
    extra: tuple[tuple[str, Every], ...] = ()

    def note(self, name: str) -> None:
        self.events.append((name, self.step))

    def prepare(self, run: Run[Any]) -> None:
        self.note("prepare")

    def advance(self, steps: int) -> None:
        self.step += steps

    def check(self) -> None:
        if self.step >= self.broken:
            raise InputError(f"broken at step {self.step}")

    def outputs(self, run: Run[Any], files: ExitStack) -> Iterator[Every]:
        files.callback(self.note, "closed")
        yield from (every for _, every in self.extra)

    def save(self, path: Path, run: Run[Any]) -> None:
        self.note("save")
        path.write_text(str(self.step))

    def write_results(self, run: Run[Any]) -> None:
        self.note("results")

    def finish(self, run: Run[Any]) -> None:
        self.note("finish")

    def summary(self, run: Run[Any]) -> dict[str, Any]:
        return {"step": self.step, "steps": run.taken}

    def every(self, name: str, interval: int, **more: Any) -> None:
        self.extra = (*self.extra, (name, Every(interval, lambda: self.note(name), **more)))


def seen(state: Counting, name: str) -> list[int]:
    return [step for n, step in state.events if n == name]


def test_what_is_due_at_which_step() -> None:
    state = Counting()
    state.every("third", 3)
    state.every("fourth", 4, at_end=True, taken=0)
    state.every("end", 0, at_end=True)
    state.every("never", 0)
    run = Run(state=state, steps=10)
    run.execute()
    assert seen(state, "third") == [0, 3, 6, 9]
    assert seen(state, "fourth") == [4, 8, 10]
    assert seen(state, "end") == [10]
    assert seen(state, "never") == []
    assert (run.finish(), run.done, run.saved) == ({"step": 10, "steps": 10}, True, False)
    assert state.events[0] == ("prepare", 0)
    assert state.events[-2:] == [("closed", 10), ("finish", 10)]


def test_a_resumed_run_does_nothing_twice(tmp_path: Path) -> None:
    """Its first step belongs to the part before; its own file stays until there is more."""
    path = tmp_path / "a"
    state = Counting(step=6)
    state.every("third", 3, taken=6)
    checkpoints = Checkpoints(path, every=4, resumed=tmp_path / "." / "a")
    run = Run(state=state, steps=10, checkpoints=checkpoints, first_step=6)
    run.execute()
    assert seen(state, "third") == [9]
    assert seen(state, "save") == [8, 10]
    assert (run.taken, path.read_text()) == (4, "10")


@pytest.mark.parametrize(("first", "steps"), [(True, [0, 5, 9]), (False, [5, 9])])
def test_checkpoints(tmp_path: Path, first: bool, steps: list[int]) -> None:
    state = Counting()
    run = Run(state=state, steps=9, checkpoints=Checkpoints(tmp_path / "a", every=5, first=first))
    run.execute()
    assert seen(state, "save") == steps


def test_when_checkpoints_are_due() -> None:
    assert [Checkpoints(every=5).due(n, 1e9, 0.0) for n in (4, 5)] == [False, True]
    assert [Checkpoints(seconds=2.0).due(5, since, 9.0) for since in (1.9, 2.0)] == [False, True]
    assert [Checkpoints().due(5, since, 1.0) for since in (59.0, 60.0)] == [False, True]
    assert [Checkpoints().due(5, since, 5.0) for since in (99.0, 100.0)] == [False, True]


def test_outputs_may_end_a_run_and_ask_for_a_checkpoint(tmp_path: Path) -> None:
    state = Counting()
    run = Run(state=state, steps=9, checkpoints=Checkpoints(tmp_path / "a", first=False))

    def look() -> None:
        run.crowded, run.ended = state.step == 4, state.step == 6

    state.extra = (("look", Every(2, look)),)
    run.execute()
    assert (run.step, run.done, seen(state, "save")) == (6, True, [4, 6])


def test_nothing_is_measured_or_written_of_a_broken_state(tmp_path: Path) -> None:
    state = Counting(broken=4)
    state.every("second", 2)
    checkpoints = Checkpoints(tmp_path / "a", seconds=1e9)
    with pytest.raises(InputError, match="broken at step 4"):
        Run(state=state, steps=9, checkpoints=checkpoints).execute()
    assert (seen(state, "second"), seen(state, "save")) == ([0, 2], [0])
    assert state.events[-1] == ("closed", 4)


@pytest.mark.parametrize(
    ("checkpoints", "text"),
    [
        (Checkpoints(), "interrupted at step 2; nothing was kept, as there is no --out"),
        (Checkpoints(Path("a")), "interrupted; continue with: lanewise counting run --resume a"),
    ],
)
def test_ctrl_c(checkpoints: Checkpoints, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    state = Counting()
    state.extra = (("press", Every(2, lambda: signal.raise_signal(signal.SIGINT), taken=0)),)
    run = Run(state=state, steps=9, checkpoints=checkpoints)
    try:
        with pytest.raises(KeyboardInterrupt):
            run.execute()
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.step, state.events[-1]) == (2, ("closed", 2))
    assert _how_to_go_on("counting", run) == text
    assert Path("a").exists() == (checkpoints.path is not None)


def test_what_is_said_before_the_first_checkpoint() -> None:
    run = Run(state=Counting(), steps=9, checkpoints=Checkpoints(Path("a.h5")))
    text = "interrupted at step 0; nothing was kept, as no checkpoint was written yet"
    assert _how_to_go_on("counting", run) == text
