"""Campaign "kills": a run that is killed, interrupted or ended at random moments, again and again, ends as if nothing
had happened.

The command runs in forked processes, which have all kernels already. Between two kills the checkpoint is resumed, or,
where there is none yet, the run begun anew; the last part runs to the end. Then every dataset, the measurements beside
it and the clock have the bits of an undisturbed run, and no claim and no temporary file is left.
"""

from __future__ import annotations

import functools
import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from lanewise.sims.waves.units import has_checkpoints
from tests.fuzz import waves_files
from tests.fuzz.campaign import Campaign, Case
from tests.fuzz.commands import RUNS, SCRATCH, command, folder, forked, remember_programs, state, wait

STEPS = 8
PRODUCTS = ("gravity",) * 6 + ("boids",) * 3 + ("lbm",) + ("waves",) * 3 * waves_files.THERE
"""By what a run costs."""

LIMIT = 120.0  # seconds for a command
OFTEN: dict[str, tuple[object, ...]] = {
    "gravity": ("--checkpoint-seconds", 0, "--diagnostics-every", 2, "--snapshot-every", 5, "--overwrite"),
    "lbm": ("--checkpoint-every", 1, "--forces", "a.csv"),
    "boids": ("--checkpoint-every", 1),
}  # fmt: skip
FRESH: dict[str, tuple[object, ...]] = {"gravity": (), "lbm": ("--overwrite",), "boids": ()}
"""With these a run is begun again, whose first checkpoint was not there yet: its other files may be."""

ENDINGS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ALLOWED = {
    signal.SIGKILL: (-signal.SIGKILL, 0), signal.SIGTERM: (-signal.SIGTERM, 0), signal.SIGINT: (130, 0),
}  # fmt: skip


def body(case: Case) -> str:
    random = case.random
    product = random.choice(PRODUCTS)
    wanted, seconds = undisturbed(product)
    killed = 0
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        log = Path(place) / "log"
        prepare(product)
        for _ in range(random.randint(1, 4)):
            if is_complete(product):  # killed when everything was written
                break
            number, after = random.choice(ENDINGS), random.random() * 1.1 * seconds
            case.shown += f"{product}: {number.name} after {after:.4f} s; "
            child = forked(log, *part(product))
            time.sleep(after)
            os.kill(child, number)  # it may have ended, but nobody has waited for it yet
            code = wait(child, LIMIT)
            assert code in ALLOWED[number], f"code {code} after {number.name}\n{_said(log)}"
            if code == 0:
                break
            killed += 1
        if not is_complete(product) or _hidden():  # once more: to its end, or only to clear away what the last one left
            complete = is_complete(product) and product != "waves"  # whose search is then begun again
            code = wait(forked(log, *part(product)), LIMIT)
            assert code == (2 if complete else 0), f"code {code} at the end\n{_said(log)}"
            assert not complete or "is complete at step" in _said(log), _said(log)
        assert _hidden() == [], _hidden()
        assert ended(product) == wanted, f"other bits\n{_said(log)}"
    case.counts[product] += 1
    case.counts["killed"] += killed
    return f"killed {killed} times" if killed else "ended before"


def _hidden() -> list[str]:
    """Claims and temporary files."""
    return sorted(p.name for p in Path().iterdir() if p.name.startswith("."))


def part(product: str) -> tuple[object, ...]:
    """The command that begins the run or, once there is a checkpoint, goes on."""
    if product == "waves":
        return waves_files.RESUMED if has_checkpoints(Path(waves_files.UNITS)) else waves_files.BEGUN
    if Path("a.h5").exists():
        return product, "run", "--resume", "a.h5", *OFTEN[product]
    return product, "run", *RUNS[product], "--steps", STEPS, "--out", "a.h5", *OFTEN[product], *FRESH[product]


def prepare(product: str) -> None:
    """What the command reads."""
    if product == "waves":
        waves_files.inputs()


def is_complete(product: str) -> bool:
    """Whether the checkpoint is of the last step; of a search, whether its list is there and its checkpoints
    are gone.
    """
    import h5py

    if product == "waves":
        return Path(waves_files.LIST).exists() and not has_checkpoints(Path(waves_files.UNITS))
    if not Path("a.h5").exists():
        return False
    with h5py.File("a.h5") as file:
        if "clock" in file["lanewise"].attrs:
            return int(file.attrs["step"]) >= STEPS
        return int(file["lanewise"].attrs["step"]) >= STEPS


def ended(product: str) -> dict[str, Any]:
    """What a run has left."""
    files = {p.name: p.read_bytes() for p in Path().glob("*.csv")}
    if product == "waves":
        return files
    return {**state(Path("a.h5")), **files}


@functools.cache
def undisturbed(product: str) -> tuple[dict[str, Any], float]:
    """What is left by a run that nobody kills, and the seconds that it takes. It is run here first: the kernels stay
    for those that are forked.
    """
    remember_programs()
    with tempfile.TemporaryDirectory(prefix="lanewise-fuzz-", dir=SCRATCH) as place, folder(Path(place)):
        prepare(product)
        first = command(*part(product))
        assert first.code == 0, first
        wanted = ended(product)
        for path in Path().iterdir():
            path.unlink()
        prepare(product)
        begin = time.monotonic()
        code = wait(forked(Path(place) / "log", *part(product)), LIMIT)
        seconds = time.monotonic() - begin
        assert code == 0, _said(Path("log"))
        assert ended(product) == wanted
    return wanted, seconds


def _said(log: Path) -> str:
    return log.read_text(errors="replace")[-3000:] if log.exists() else ""


KILLS = Campaign("kills", body, limit=600.0, renew=100_000)
"""The first cases of a process compile; a process is not renewed, for it compiles nothing more."""
