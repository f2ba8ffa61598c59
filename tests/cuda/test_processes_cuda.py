"""Processes with a GPU each share a mesh: the bits of one process, by NCCL and through memory of the host, and one end
of all.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import lanewise as lw
from tests.mesh import flocks_program, flows_program, ranks_program
from tests.mesh.processes import WITH_MPI, but_compiling, end_of, last_json, run, start
from tests.mesh.rank_devices import DEVICE

PROGRAM = Path(ranks_program.__file__)
FLOCKS = ("plain", "periodic", "obstacles")
MODULE = ("-m", "lanewise")
pytestmark = [pytest.mark.cuda, *WITH_MPI]


@pytest.fixture(autouse=True, params=["1", "0"], ids=["NCCL", "host"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("needs two GPUs")
    monkeypatch.setenv(DEVICE, "cuda")
    if request.param == "1":
        pytest.importorskip("cupy.cuda.nccl")
    monkeypatch.setenv("LANEWISE_NCCL", request.param)
    return str(request.param)


def found(*command: object) -> dict[str, str]:
    done = run(2, *command, seconds=200)
    assert (done.returncode, but_compiling(done.stderr)) == (0, "")
    answer: Any = last_json(done.stdout)
    assert answer["mesh"] == "cuda + cuda:1 on 2 processes"
    bits: dict[str, str] = answer["bits"]
    return bits


def test_calls_have_the_bits_of_one_process(tmp_path: Path) -> None:
    assert found(PROGRAM, "bits", tmp_path / "b.h5") == ranks_program.bits(lw.Mesh(["cuda:0"] * 2))


def test_flows_have_the_bits_of_one_device(tmp_path: Path) -> None:
    assert found(flows_program.__file__, 0, 2) == flows_program.bits("cuda", range(2), tmp_path)


def test_flocks_have_the_bits_of_one_device() -> None:
    assert found(flocks_program.__file__, *FLOCKS) == flocks_program.bits(lw.Mesh(["cuda:0"] * 2), FLOCKS)


@pytest.mark.parametrize(
    "line",
    [
        ["gravity", "run", "--bodies", 3000, "--steps", 9, "--dt", "0.001", "--softening", "0.05", "--method", "tree"],
        [
            "gravity",
            "run",
            "--bodies",
            3000,
            "--steps",
            9,
            "--dt",
            "0.001",
            "--softening",
            "0.05",
            "--method",
            "direct",
        ],
        ["lbm", "run", "cavity", "--size", 60, "--steps", 40],
        ["boids", "run", "--agents", 3000, "--steps", 9],
    ],
    ids=["tree", "direct", "lbm", "boids"],
)
def test_runs_have_the_files_of_one_process(line: list[Any], tmp_path: Path) -> None:
    from tests.mesh.test_processes_gravity import held

    made = [tmp_path / name for name in ("one.h5", "two.h5")]
    for count, path, device in ((1, made[0], "cuda:*"), (2, made[1], "cuda")):
        done = run(count, *MODULE, *line, "--device", device, "--out", path, seconds=120)
        assert (done.returncode, but_compiling(done.stderr)) == (0, "")
    one, two = map(held, made)
    assert one == two


@pytest.mark.parametrize(("case", "code"), [("exception", 1), ("alone", 1), ("killed", None)])
def test_all_end_where_one_does(case: str, code: int | None) -> None:
    """Within 30 seconds of when both were there: how long processes take to start is the machine's affair."""
    with start(2, PROGRAM, case) as process:
        assert process.stdout is not None
        begun = [process.stdout.readline() for _ in range(2)]
        began = time.monotonic()
        done = end_of(process)
    assert time.monotonic() - began < 30.0
    assert begun[0].endswith(" begins\n")  # the other one may be ended before it says so
    assert done.returncode == code if code else done.returncode
    assert case == "killed" or "rank" in done.stderr  # of a killed one launchers speak
