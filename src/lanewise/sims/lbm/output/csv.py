"""Time series as CSV text, written while the run goes on: a line of column names, then a line a measurement.

The first column is `step`, growing from line to line. Each line goes to the system in one piece as soon as it is
measured, so that `tail -f` shows it and a killed run leaves whole lines, but for perhaps the last one. `sync` before each
checkpoint makes sure that a checkpoint never knows of a step that the series lacks; a resumed run cuts what came after it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from lanewise.errors import ArgumentError, InputError
from lanewise.io.atomic import atomic_path, writable_target, writing
from lanewise.io.source import FilePath, reading


class TimeSeries:
    """A CSV file that grows. Use it in a `with` block, or call `close`. `last_step` is that of its last line, or -1."""

    def __init__(
        self, path: FilePath, columns: Sequence[str], *, resume_step: int | None = None, overwrite: bool = False
    ) -> None:
        """Start a new file, or continue one behind `resume_step`.

        Args:
            path: the file.
            columns: names; the first one is `step`.
            resume_step: the step of the checkpoint from which the run continues; later lines are dropped. The file
                is begun anew where it does not exist (a run may ask for a series only when it is resumed).
            overwrite: whether an existing file is replaced when nothing is resumed.

        Raises:
            ArgumentError: the columns do not begin with `step`.
            InputError: the file exists, has other columns, or cannot be written.
        """
        if not columns or columns[0] != "step":
            raise ArgumentError(f"the columns are {','.join(columns) or 'none'}; wanted step as the first one")
        self.columns = tuple(columns)
        self.path = writable_target(path, overwrite or resume_step is not None)
        resumed = resume_step is not None and self.path.exists()
        self.last_step = truncate(path, self.columns, resume_step) if resumed and resume_step is not None else -1
        if not resumed:  # with its first line from the beginning: a full disk leaves no file of nothing
            with atomic_path(path, overwrite or resume_step is not None) as temporary:
                temporary.write_text(",".join(self.columns) + "\n", encoding="utf-8")
        with writing(self.path):
            self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND)

    def add(self, step: int, *values: float) -> None:
        """Write one line; numbers keep all their digits. A step that is not behind the last one is an ArgumentError."""
        if len(values) != len(self.columns) - 1:
            raise ArgumentError(f"{len(values)} values beside the step; wanted {','.join(self.columns[1:])}")
        if step <= self.last_step:
            raise ArgumentError(f"step {step} after step {self.last_step}; wanted growing steps")
        self._write(",".join([str(int(step)), *(repr(float(value)) for value in values)]))
        self.last_step = step

    def sync(self) -> None:
        """Wait until all lines are on the disk. To be called before a checkpoint is written."""
        with writing(self.path):
            os.fsync(self._handle)

    def _write(self, line: str) -> None:
        with writing(self.path):
            rest = memoryview(f"{line}\n".encode())
            while rest:  # a full disk may take a part, and says why at the next call
                rest = rest[os.write(self._handle, rest) :]

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> TimeSeries:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def truncate(path: FilePath, columns: Sequence[str], step: int) -> int:
    """Cut the lines after `step`, and a last line that was not finished. The step of the last line that is left, or -1.

    Raises:
        InputError: the file has other columns, a damaged line, or cannot be written.
    """
    kept, last = 0, -1
    with reading(path, "CSV", (ValueError,)), Path(path).open("rb") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                break
            if number == 1:
                _check_header(line, columns)
            elif (found := _step(number, line)) > step:
                break
            else:
                last = found
            kept += len(line)
        if not kept:
            raise InputError(f"no line of column names; wanted {','.join(columns)}")
    with writing(path):
        os.truncate(path, kept)
    return last


def _check_header(line: bytes, columns: Sequence[str]) -> None:
    found, wanted = line.decode().strip(), ",".join(columns)
    if found != wanted:
        raise InputError(f"its columns are {found}; wanted {wanted}, to continue it")


def _step(number: int, line: bytes) -> int:
    cell = line.split(b",", 1)[0].strip()
    if not cell.isdigit():
        raise InputError(f"line {number} starts with {cell.decode(errors='replace')!r}; wanted a step")
    return int(cell)
