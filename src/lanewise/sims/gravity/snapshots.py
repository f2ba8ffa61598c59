"""Numbered snapshots: what `--snapshot-every` writes beside a run's own file. They are archives; no resumed run writes to one.

A snapshot is a checkpoint that keeps the name of its run's file as the attribute `snapshot_of` of `/lanewise`; that of the run's own file
is empty. Before 0.2 there was no such attribute, and a file is a snapshot if its name ends in the step that it holds.
"""

from __future__ import annotations

import re
from pathlib import Path

from lanewise.errors import InputError
from lanewise.io.atomic import writable_target
from lanewise.io.hdf5 import open_hdf5, text_of

SNAPSHOT_OF = "snapshot_of"
GROUP = "lanewise"


def snapshot_path(out: Path, step: int) -> Path:
    """run.h5 at step 100: run_00000100.h5."""
    return out.with_name(f"{out.stem}_{step:08d}{out.suffix}")


def run_file(path: Path) -> Path | None:
    """The own file of the run that wrote `path` as a snapshot, in the same folder; None for what is no snapshot."""
    with open_hdf5(path) as file:
        attributes = file[GROUP].attrs if GROUP in file else {}
        if SNAPSHOT_OF in attributes:
            name = text_of(attributes[SNAPSHOT_OF])
            return path.with_name(name) if name and Path(name).name == name else None
        step = int(attributes.get("step", -1))
    numbered = re.fullmatch(r"(.+)_(\d{8,})", path.stem)
    if numbered is None or int(numbered[2]) != step:
        return None
    return path.with_name(numbered[1] + path.suffix)


def resumed_target(path: Path, out: Path | None, overwrite: bool) -> Path:
    """Where a run that is resumed from `path` goes on: in `out`, or in `path`; from a snapshot in the run's own file.

    Raises `InputError` where that would replace a snapshot, or another file, without `overwrite`.
    """
    own = run_file(path)
    target = out or own or path
    same = target.resolve() == path.resolve()
    if own is not None and not overwrite and (same or (out is None and target.exists())):
        what = "that is this file" if same else "which exists"
        raise InputError(
            f"{path} is a snapshot, and a resumed run never writes to one; it would go on in {target}, {what}: "
            "name another file with --out, or give --overwrite to replace it"
        )
    writable_target(target, overwrite or (same and own is None))
    return target
