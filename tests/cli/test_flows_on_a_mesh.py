"""`lanewise lbm run` on a mesh: the files of one device, and runs that go on on other parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lanewise.sims.lbm import Simulation
from tests.cli.command import Command
from tests.mesh.test_flows import same, seen

CASES = {
    "karman": ("karman", "--size", 4, "--steps", 30, "--checkpoint-every", 12),
    "cavity": ("cavity", "--size", 41, "--steps", 20, "--storage", "f64", "--precision", "f64"),
}


@pytest.mark.slow_cases("karman")
@pytest.mark.parametrize("case", CASES)
def test_a_run_writes_the_files_of_one_device(case: str, lanewise: Command) -> None:
    def run(device: str, name: str) -> dict[str, bytes]:
        files = ("--out", f"{name}.h5", "--vti", f"{name}.vti", "--plot", f"{name}.png")
        forces = ("--forces", f"{name}.csv") if case == "karman" else ()
        outcome = lanewise("lbm", "run", *CASES[case], "--device", device, *files, *forces)
        assert outcome.code == 0, outcome.err
        assert f"on {'a mesh (3 x cpu)' if '*' in device else 'cpu'} (" in outcome.out
        return {p.suffix: p.read_bytes() for p in Path().glob(f"{name}.*")}

    one, many = run("cpu", "one"), run("cpu*3", "many")
    assert one.keys() == many.keys()
    assert len(one) >= 3
    for suffix, wanted in one.items():
        found = many[suffix].replace(b"many.", b"one.")
        assert len(found) == len(wanted)
        assert found == wanted, suffix


def test_a_run_goes_on_on_other_parts(lanewise: Command) -> None:
    size = ("lbm", "run", "cavity", "--size", 41)
    assert lanewise(*size, "--steps", 30, "--out", "whole.h5").code == 0
    assert lanewise(*size, "--steps", 17, "--out", "run.h5", "--device", "cpu*2").code == 0
    outcome = lanewise("lbm", "run", "--resume", "run.h5", "--steps", 7, "--device", "cpu*5")
    assert outcome.code == 0, outcome.err
    assert outcome.err == ""
    outcome = lanewise("lbm", "run", "--resume", "run.h5", "--steps", 6)
    assert outcome.code == 0, outcome.err
    whole, run = Simulation.resume("whole.h5"), Simulation.resume("run.h5")
    assert whole.step == run.step == 30
    same(seen(run, ()), seen(whole, ()))


def test_a_run_with_thin_parts_is_refused(lanewise: Command) -> None:
    outcome = lanewise("lbm", "run", "cavity", "--size", 9, "--steps", 3, "--device", "cpu*2")
    assert outcome.code == 2
    assert "9 layers along y, and a mesh of 2 parts (2 x cpu) needs 8 for each: wanted one device" in outcome.err
    assert len(outcome.err.splitlines()) == 1
