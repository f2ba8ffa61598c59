"""Cards for a machine that has none: units on a CPU take turns on them, and one file says in which order what happens.

    python -m tests.sims.units.stand_in units run DIR gravity ...

CARDS has their names, EVENTS is the file. HOOK is what a unit does while it has a card: "overlap" waits until another
unit has read what it begins with, "kill" ends the first process with a signal.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
CHILD = "tests.sims.units.stand_in_child"
PATIENCE = 60.0  # seconds


def environment(folder: Path, cards: str = "a", hook: str = "") -> dict[str, str]:
    """Of a process whose claims and events are in a folder."""
    path = os.pathsep.join(map(str, (ROOT / "src", ROOT)))
    return {
        **os.environ, "PYTHONPATH": path, "TMPDIR": str(folder), "CARDS": cards, "HOOK": hook,
        "EVENTS": str(folder / "events"),
    }  # fmt: skip


def note(unit: str, what: str) -> None:
    """Add a line; those of all processes are whole."""
    handle = os.open(os.environ["EVENTS"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{unit} {what}\n".encode())
    os.close(handle)


def events(path: Path) -> list[tuple[str, str]]:
    """Units and what they did."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [(unit, what) for unit, _, what in (line.partition(" ") for line in lines)]


def replace_in(place: Any, name: str, around: Callable[..., Any]) -> None:
    """Put a function in the place of another one, which it gets first."""
    before = getattr(place, name)
    setattr(place, name, lambda *given, **named: around(before, *given, **named))


def take_part(unit: str) -> None:
    """Let this process say what it does."""
    from lanewise.sims.common.cards import Turn
    from lanewise.sims.common.run import Run
    from lanewise.sims.gravity import runner

    def reading(before: Any, *given: Any, **named: Any) -> Any:
        read = before(*given, **named)
        note(unit, "has read")
        return read

    def begin(before: Any, turn: Any) -> None:
        note(unit, "asks")
        before(turn)
        note(unit, f"begins on {os.environ['CUDA_VISIBLE_DEVICES']}")

    def execute(before: Any, *given: Any) -> None:
        while_held(unit)
        before(*given)

    def end(before: Any, turn: Any) -> None:
        note(unit, f"ends on {os.environ['CUDA_VISIBLE_DEVICES']}")
        before(turn)

    for name in ("load_particles", "read_checkpoint"):
        replace_in(runner, name, reading)
    replace_in(Turn, "begin", begin)
    replace_in(Run, "execute", execute)
    replace_in(Turn, "end", end)


def while_held(unit: str) -> None:
    """What a unit does while it has a card."""
    path, hook = Path(os.environ["EVENTS"]), os.environ["HOOK"]
    if hook == "kill" and not (flag := path.with_name("killed")).exists():
        flag.touch()
        note(unit, f"dies on {os.environ['CUDA_VISIBLE_DEVICES']}")
        os.kill(os.getpid(), signal.SIGKILL)
    number, dot, most = hook.partition(" ")
    if number == "overlap" and dot:
        begun = len({u for u, what in events(path) if what.startswith("begins")})
        wanted, end = min(begun + 1, int(most)), time.monotonic() + PATIENCE
        while len({u for u, what in events(path) if what == "has read"}) < wanted:
            assert time.monotonic() < end, "no other unit reads while this one has the card"
            time.sleep(0.01)


def main() -> None:
    """Run the command of the arguments."""
    from lanewise.sims.units import attempt, coordinator
    from lanewise.sims.units.scan import Scan

    def result(before: Any, files: Any, *given: Any) -> Any:
        note(files.state.stem, "has a result")
        return before(files, *given)

    setattr(attempt, "CHILD", CHILD)  # noqa: B010
    replace_in(attempt, "write_result", result)
    setattr(coordinator, "visible_cards", lambda: os.environ["CARDS"].split(","))  # noqa: B010
    setattr(Scan, "device", "cuda")  # noqa: B010
    sys.argv[0] = "lanewise"
    runpy.run_module("lanewise", run_name="__main__")


if __name__ == "__main__":
    main()
