"""Programs that mpiexec starts several times, for tests of meshes over processes."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BESIDE = Path(sys.executable).parent / "mpiexec"
MPIEXEC = BESIDE if BESIDE.exists() else Path(shutil.which("mpiexec") or BESIDE)
PROGRAM = Path(__file__).parent / "ranks_program.py"

_missing = "mpi4py" if importlib.util.find_spec("mpi4py") is None else "mpiexec" if not MPIEXEC.exists() else ""
# marks a module's tests that start processes
WITH_MPI = [pytest.mark.mpi, pytest.mark.skipif(bool(_missing), reason=f"{_missing} is not installed: the extra mpi")]


def start(count: int, *command: object, options: tuple[str, ...] = (), folder: Path = ROOT) -> subprocess.Popen[str]:
    """So many copies of a Python command."""
    return subprocess.Popen(
        [str(MPIEXEC), *options, "-n", str(count), sys.executable, *map(str, command)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run(count: int, *command: object, options: tuple[str, ...] = (), folder: Path = ROOT, seconds: float = 90) -> Any:
    """The same, to its end: exit code, output, errors."""
    with start(count, *command, options=options, folder=folder) as process:
        return end_of(process, seconds)


def end_of(process: subprocess.Popen[str], seconds: float = 90) -> Any:
    """What a launcher leaves, which may take some time."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate()
        pytest.fail(f"{process.args} did not end: {out}{err}")
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def but_compiling(errors: str) -> str:
    """What was said on standard error, but that kernels are compiled: on a busy machine that is said."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("compiling kernel"))


def last_json(text: str) -> dict[str, Any]:
    return json.loads(text.splitlines()[-1])
