"""The files of a command: those that are read, and those that it may write."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lanewise.support.errors import InputError

if TYPE_CHECKING:
    from lanewise.sims.waves.prepared import SearchData
    from lanewise.sims.waves.sft import SftSet


def check_device(device: str) -> None:
    """Refuse, before anything is read, a device that there is not."""
    from lanewise.sims.common.devices import resolve

    if device != "numpy":
        resolve(device)


def workers_of(
    device: str, workers: int | None, scheduler: str | None
) -> tuple[str, int | None, tuple[int, ...]]:
    """The device of a search, its number of workers, and the numbers of GPUs that have a worker
    each: those of a mesh, such as "cuda:*" or "cuda:0,2". "cpu*4" has four workers of the CPU. Of a
    single device the workers are those that are requested.

    Raises `InputError` for other meshes and numbers of workers, `DeviceError` for what is not
    there.
    """
    from lanewise.sims.common import devices as known

    if not known.is_mesh(device):
        return device, workers, ()
    if scheduler is not None:
        raise InputError(
            f"--scheduler has the workers and their GPUs, found --device {device}; wanted "
            f"{known.target_of(device).name}"
        )
    place = known.place_of(device)
    devices = [place] if isinstance(place, str) else list(place.devices)
    if workers is not None and workers > len(devices):
        raise InputError(
            f"--device {device} has {len(devices)} {'worker' if len(devices) == 1 else 'workers'}, "
            f"and --workers is {workers}; leave one of them out"
        )
    if all(known.target_of(name) is known.CPU for name in devices):
        return known.CPU.name, workers or len(devices), ()
    for name in devices:
        if known.target_of(name) is not known.CUDA:
            raise InputError(
                f"--device {device} takes GPUs or the CPU, found {name}; wanted --device {name} "
                f"--workers {len(devices)}"
            )
        if devices.count(name) > 1:
            raise InputError(
                f"--device {device} has {name} twice; wanted it once, and --workers for more "
                "workers than GPUs, which share them in turn"
            )
    return known.CUDA.name, workers, tuple(map(known.cuda_number, devices))


def check_outputs(
    out: Path, plot: Path | None, overwrite: bool, follow_up: Path | None = None
) -> None:
    """Refuse, before anything is computed, files that could not be written or are one."""
    from lanewise.sims.common.checks import check_files

    files = {"out": out, "plot": plot, "follow-up": follow_up}
    check_files(files, overwrite=overwrite, suffixes={"out": (".csv",), "plot": (".png",)})


def read_sfts(
    patterns: Sequence[str], cover: tuple[float, float] | None, margin: int, skip_bad: bool
) -> SftSet:
    """The SFTs of a band with `margin` bins on both sides; those that were left out are listed."""
    from lanewise.sims import waves

    sfts = waves.load_sfts(list(patterns), cover, margin=margin, skip_bad=skip_bad)
    say_left_out(sfts.left_out)
    return sfts


def say_left_out(left_out: Sequence[object]) -> None:
    """List what was damaged."""
    for x in left_out:
        print(f"left out: {x}", file=sys.stderr)


def prepared_data(
    patterns: Sequence[str],
    cover: tuple[float, float] | None,
    dterms: int,
    sqrt_s: str | None,
    skip_bad: bool,
) -> SearchData:
    """SFTs that are ready for templates: all that is loaded, or `cover` in Hz."""
    from lanewise.sims import waves
    from lanewise.sims.waves.commands.arguments import sqrt_s as assumed

    if dterms < 1:
        raise InputError(f"--dterms is {dterms}; wanted at least 1")
    sfts = read_sfts(patterns, cover, waves.search_margin(dterms) if cover else 0, skip_bad)
    return waves.prepare(sfts, cover, dterms=dterms, sqrt_s=assumed(sqrt_s, sfts.names))
