"""One computation of a unit: its own process, from its last checkpoint or from the start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lanewise.sims.common.checks import COMPLETE
from lanewise.sims.units.results import UnitFiles, UnitResult, write_result
from lanewise.sims.units.scan import Scan, ScanUnit
from lanewise.support.attributes import frozen
from lanewise.support.command import INTERRUPTED

ATTEMPTS = 3  # of a process that ends without a result, as one that is killed
REFUSED = 2  # the code of a command whose input is wrong: it would be wrong again
LOOK = 0.2  # seconds between two looks whether to stop
CHILD = "lanewise.sims.units.child"


class UnitFailed(Exception):
    """A unit that has no result; its text is why."""


@frozen
@dataclass(frozen=True, slots=True)
class Conditions:
    """Under which processes of units run: threads of a CPU, less priority, and GPUs, of which each
    takes one for as long as it needs it.
    """

    threads: int
    nice: int = 0
    cards: tuple[str, ...] = ()

    def environment(self) -> dict[str, str]:
        """Of a process."""
        values = {**os.environ, "PYTHONUNBUFFERED": "1"}
        values.setdefault("LANEWISE_THREADS", str(self.threads))
        if len(self.cards) == 1:
            values["CUDA_VISIBLE_DEVICES"] = self.cards[0]
        return values


def run_unit(
    scan: Scan, unit: ScanUnit, files: UnitFiles, conditions: Conditions, stop: threading.Event
) -> UnitResult | None:
    """Compute a unit to its end and keep its result; None if `stop` was set before, which leaves a
    checkpoint. Raises UnitFailed with the reason for a unit that has no result.
    """
    for attempt in range(ATTEMPTS):
        code, said = _process(scan, unit, files, conditions, stop)
        if code == 0:
            return write_result(files, scan, unit, _summary(said, files))
        if stop.is_set() or code == INTERRUPTED:
            return None
        why = _last_words(files.log)
        if code == REFUSED and COMPLETE in why:
            # killed between its last checkpoint and its result: what it measured on the way is lost
            files.state.unlink(missing_ok=True)
        elif code == REFUSED and "another run writes" not in why:
            raise UnitFailed(why)
        elif attempt == ATTEMPTS - 1:
            raise UnitFailed(f"its process ended with code {code}: {why}")
        stop.wait(LOOK)
    raise UnitFailed(f"no result after {ATTEMPTS} attempts")


def _process(
    scan: Scan, unit: ScanUnit, files: UnitFiles, conditions: Conditions, stop: threading.Event
) -> tuple[int, str]:
    """The exit code of a process, and what it said; its end is waited for."""
    place = Path(scan.folder)
    cards = ",".join(conditions.cards)
    under = [str(conditions.nice), cards, str(files.waits.resolve())]
    command = [sys.executable, "-m", CHILD, *under, *_command(scan, unit, files)]
    pieces: list[str] = []
    with (
        files.log.open("w", encoding="utf-8") as log,
        subprocess.Popen(
            command,
            cwd=place if place.is_dir() else None,
            env=conditions.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # Ctrl-C is for its parent, which passes it on once
        ) as child,
    ):
        assert child.stdout is not None
        read = child.stdout.read
        reader = threading.Thread(target=lambda: pieces.append(read()))
        reader.start()
        _wait(child, stop)
        reader.join()
        log.write(said := "".join(pieces))
    return child.returncode, said


def _wait(child: subprocess.Popen[str], stop: threading.Event) -> None:
    asked = False
    while True:
        with suppress(subprocess.TimeoutExpired):
            child.wait(LOOK)
            return
        if stop.is_set() and not asked:
            child.send_signal(signal.SIGINT)  # it ends after whole steps, with a checkpoint
            asked = True


def _command(scan: Scan, unit: ScanUnit, files: UnitFiles) -> list[str]:
    """What follows `lanewise`."""
    state = str(files.state.resolve())
    begun = files.state.exists()
    which = ("--resume", state) if begun else (*unit.arguments, "--out", state)
    return [scan.product, "run", *which, "--json", "--quiet"]


def _summary(said: str, files: UnitFiles) -> Mapping[str, Any]:
    try:
        return json.loads(said.rstrip().rpartition("\n")[2])
    except ValueError as error:
        raise UnitFailed(f"its process said no result; see {files.log}") from error


def _last_words(log: Path) -> str:
    """The last line of what a process said of its errors."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].removeprefix("error: ") if lines else "it said nothing"
