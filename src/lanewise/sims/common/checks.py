"""What every run refuses: steps and time steps that are none, files in each other's way,
checkpoints that are complete.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from lanewise.io.atomic import writable_target
from lanewise.support.attributes import unknown
from lanewise.support.errors import InputError

T = TypeVar("T")
MOST_STEPS = 10**12
COMPLETE = "is complete at step"  # what is said of a checkpoint at the end of its run


def check_steps(steps: int, least: int = 1) -> None:
    """Refuse no steps, and more than a run can count."""
    if not least <= steps <= MOST_STEPS:
        raise InputError(
            f"the number of steps is {steps}; wanted an integer from {least} to {MOST_STEPS:,}"
        )


def check_known(what: str, name: object, names: Collection[str]) -> None:
    """Refuse a name that is none of these; the error proposes one that is like it."""
    if name not in names:
        raise InputError(unknown(what, name, names))


def known(what: str, name: str, things: Mapping[str, T]) -> T:
    """What has this name; raises `InputError` with the others where there is none."""
    check_known(what, name, things)
    return things[name]


def check_every(every: int) -> None:
    """Refuse an interval of no steps."""
    if every < 1:
        raise InputError(f"every={every}: wanted a whole number of steps from 1 on")


def check_time_step(dt: float) -> None:
    """Refuse a time step of zero or less, or not finite."""
    if not (math.isfinite(dt) and dt > 0):
        raise InputError(f"the time step dt is {dt}; wanted a finite time above zero")


def last_step(path: Path, step: int, planned: int, steps: int | None) -> int:
    """Where a run ends that is resumed from a checkpoint at `step`: after `steps` more, or (None)
    where it was to end.
    """
    if steps is not None:
        check_steps(steps)
        return step + steps
    if step >= planned:
        raise InputError(f"{path} {COMPLETE} {step:,}; say with --steps how many more")
    return planned


@contextmanager
def readable(part: str) -> Generator[None]:
    """Within the block, what no reader of JSON and of records makes sense of is a damaged
    checkpoint, which `InputError` says.
    """
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"damaged checkpoint: its {part} cannot be read: {error}") from error


def check_format(version: int, formats: tuple[int, int]) -> None:
    """Refuse a checkpoint of a format that is none of the two which are read: the one before, and
    today's.
    """
    if version not in formats:
        raise InputError(
            f"a checkpoint of format {version}; wanted format {formats[1]} or {formats[0]}"
        )


HDF5 = (".h5", ".hdf5")


def check_ending(option: str, path: Path, endings: tuple[str, ...]) -> None:
    """Refuse a name that says that something else is in the file than what will be."""
    if endings and path.suffix.lower() not in endings:
        raise InputError(f"{option} {path}: wanted a name that ends in {' or '.join(endings)}")


def check_files(
    files: Mapping[str, Path | None],
    *,
    overwrite: bool,
    resumed: Path | None = None,
    continued: Collection[str] = (),
    suffixes: Mapping[str, tuple[str, ...]] | None = None,
) -> None:
    """Refuse files that cannot be written or that are in each other's way, before anything is
    computed.

    files: by their options; "out" may be the file of the checkpoint `resumed`. continued: those to
    which a resumed run adds. suffixes: that names must have. Raises `InputError`.
    """
    taken: dict[Path, str] = {} if resumed is None else {resumed.resolve(): "--resume"}
    for name, path in files.items():
        if path is None:
            continue
        place = path.resolve()
        own = resumed is not None and name == "out" and place == resumed.resolve()
        if place in taken and not own:
            raise InputError(
                f"--{name} {path} is also the file of {taken[place]}; wanted another one"
            )
        taken[place] = f"--{name}"
        if not own:
            check_ending(f"--{name}", path, (suffixes or {}).get(name, ()))
        writable_target(path, overwrite or own or (resumed is not None and name in continued))
