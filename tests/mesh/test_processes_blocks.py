"""Boxes in blocks on several processes: the bits and the files of one device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mesh.blocks_program import bits
from tests.mesh.processes import WITH_MPI, but_compiling, last_json, run

PROGRAM = Path(__file__).parent / "blocks_program.py"
SEEDS = [0, 3, 9, 8, 6, 12, 15, 27, 32]
pytestmark = WITH_MPI


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3])
def test_blocks_on_processes_have_the_bits_and_files_of_one(count: int, tmp_path: Path) -> None:
    done = run(count, PROGRAM, *SEEDS, seconds=400)  # which compiles many kernels
    assert (done.returncode, but_compiling(done.stderr)) == (0, "")
    found: Any = last_json(done.stdout)
    assert found["mesh"] == f"{count * (count + 1)} x cpu on {count} processes"
    assert found["bits"] == bits("cpu", SEEDS, tmp_path)
