"""Two runs with one file, and runs that are resumed from numbered snapshots: nothing is overwritten that somebody
needs.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import pytest

from lanewise.io.claims import claimed
from tests.cli.command import Command, state

GRAVITY = ("gravity", "run", "--bodies", 96, "--softening", 0.05, "--dt", 0.003)
NEW = {
    "gravity": (*GRAVITY, "--out", "a.h5"),
    "gravity plot": (*GRAVITY, "--plot", "a.png"),
    "boids": ("boids", "run", "--agents", 20, "--out", "a.h5"),
    "boids movie": ("boids", "run", "--agents", 20, "--movie", "a.gif"),
    "boids final": ("boids", "run", "--agents", 20, "--final", "a.csv"),
    "lbm": ("lbm", "run", "cavity", "--out", "a.h5"),
    "lbm vti": ("lbm", "run", "cavity", "--vti", "a.vti"),
    "lbm forces": ("lbm", "run", "karman", "--forces", "a.csv"),
    "profile": (*GRAVITY, "--profile=a.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", NEW)
def test_a_file_that_another_run_writes_is_refused(lanewise: Command, name: str) -> None:
    path = next(Path(w.rpartition("=")[2]) for w in map(str, NEW[name]) if w.rpartition("=")[2].startswith("a."))
    with claimed([path]):
        outcome = lanewise(*NEW[name])
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {path}: another run writes this file (process ")
        assert outcome.err.count("\n") == 1
        assert [p.name for p in Path().iterdir()] == [f".{path}.lock"]


@pytest.mark.parametrize("product", ["gravity", "boids", "lbm"])
def test_a_checkpoint_that_another_run_continues_is_refused(lanewise: Command, product: str) -> None:
    """Before it is read: what it holds is not what it will hold when it is its turn."""
    Path("a.h5").write_bytes(b"\x89HDF\r\n\x1a\nnothing")
    if product == "gravity":
        assert lanewise(*GRAVITY, "--steps", 1, "--out", "a.h5", "--overwrite").code == 0
    with claimed([Path("a.h5")]):
        outcome = lanewise(product, "run", "--resume", "a.h5", "--steps", 1)
        assert outcome.code == 2
        assert outcome.err.startswith("error: a.h5: another run writes this file (process ")


def test_runs_leave_no_claim_behind(lanewise: Command) -> None:
    assert lanewise(*GRAVITY, "--steps", 2, "--out", "a.h5").code == 0
    assert lanewise(*GRAVITY, "--steps", 2, "--out", "a.h5").code == 2  # it exists
    assert [p.name for p in Path().iterdir()] == ["a.h5"]


# ------------------------------------------------------------ numbered snapshots


@pytest.fixture
def archived(lanewise: Command) -> Command:
    """a.h5 at step 9 with snapshots of steps 4 and 8."""
    assert lanewise(*GRAVITY, "--steps", 9, "--snapshot-every", 4, "--out", "a.h5").code == 0
    return lanewise


def test_a_snapshot_is_never_written_by_the_run_that_goes_on_from_it(archived: Command) -> None:
    before = {p.name: p.read_bytes() for p in Path().iterdir()}
    outcome = archived("gravity", "run", "--resume", "a_00000004.h5", "--steps", 1)
    message = (
        "error: a_00000004.h5 is a snapshot, and a resumed run never writes to one; it would continue in a.h5, which exists: "
        "name another file with --out, or give --overwrite to replace it\n"
    )
    assert (outcome.code, outcome.err) == (2, message)
    assert {p.name: p.read_bytes() for p in Path().iterdir()} == before


def test_it_goes_on_in_the_file_of_its_run(archived: Command) -> None:
    whole = state(Path("a.h5"))
    Path("a.h5").unlink()
    before = Path("a_00000004.h5").read_bytes()
    refused = archived("gravity", "run", "--resume", "a_00000004.h5")  # it goes on with snapshots, too
    assert refused.code == 2
    assert "the file exists already; give --overwrite to replace it" in refused.err
    outcome = archived("gravity", "run", "--resume", "a_00000004.h5", "--snapshot-every", 0)
    assert (outcome.code, outcome.err) == (0, "")
    assert "written to a.h5\n" in outcome.out
    assert Path("a_00000004.h5").read_bytes() == before
    assert state(Path("a.h5")) == whole


def test_overwrite_and_out_choose(archived: Command) -> None:
    assert archived("gravity", "run", "--resume", "a_00000004.h5", "--steps", 1, "--overwrite").code == 0
    assert state(Path("a.h5"))["step"] == 5
    assert archived("gravity", "run", "--resume", "a_00000004.h5", "--steps", 2, "--out", "b.h5").code == 0
    assert (state(Path("b.h5"))["step"], state(Path("a.h5"))["step"], state(Path("a_00000004.h5"))["step"]) == (6, 5, 4)
    same = archived("gravity", "run", "--resume", "a_00000004.h5", "--steps", 1, "--out", "a_00000004.h5")
    assert same.code == 2
    assert "it would continue in a_00000004.h5, that is this file: " in same.err


def test_a_snapshot_of_an_older_version_is_known_by_its_name_and_step(archived: Command) -> None:
    with h5py.File("a_00000004.h5", "r+") as file:
        del file["lanewise"].attrs["snapshot_of"]
    assert archived("gravity", "run", "--resume", "a_00000004.h5", "--steps", 1).code == 2
    Path("a_00000004.h5").rename("a_00000003.h5")  # a name that its user gave
    assert archived("gravity", "run", "--resume", "a_00000003.h5", "--steps", 1).code == 0


def test_a_run_whose_own_file_has_a_number_goes_on_in_it(lanewise: Command) -> None:
    assert lanewise(*GRAVITY, "--steps", 4, "--out", "a_00000004.h5").code == 0
    assert lanewise("gravity", "run", "--resume", "a_00000004.h5", "--steps", 1).code == 0
    assert state(Path("a_00000004.h5"))["step"] == 5


def test_a_snapshot_that_appears_during_the_run_is_kept(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from lanewise.sims.gravity.run import SimulatedBodies

    advance = SimulatedBodies.advance

    def appear(run: SimulatedBodies, steps: int) -> None:
        Path("a_00000002.h5").write_text("precious")
        advance(run, steps)

    monkeypatch.setattr(SimulatedBodies, "advance", appear)
    outcome = lanewise(*GRAVITY, "--steps", 4, "--snapshot-every", 2, "--out", "a.h5")
    wanted = "error: a_00000002.h5: the file exists already; give --overwrite to replace it\n"
    assert (outcome.code, outcome.err, Path("a_00000002.h5").read_text()) == (2, wanted, "precious")
