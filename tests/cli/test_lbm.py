"""`lanewise lbm run`: what it prints and writes, what it refuses, and how it goes on."""

from __future__ import annotations

import csv
import signal
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from lanewise.sims.lbm.checks import memory_bytes
from tests.cli.command import Command, Outcome, start_process
from tests.io.samples import renew_sums

CAVITY = ("lbm", "run", "cavity", "--size", 9)


def assert_refused(outcome: Outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")


def state(path: str) -> dict[str, Any]:
    """The bits of a checkpoint that decide how a run goes on."""
    with h5py.File(path) as file:
        group = file["lanewise"]
        return {
            **{name: (array.dtype.str, np.asarray(array).tobytes()) for name, array in group["state"].items()},
            "step": int(group.attrs["step"]), "series": np.asarray(group["run/series"]).tobytes(),
            "density": np.asarray(file["density"]).tobytes(), "velocity": np.asarray(file["velocity"]).tobytes(),
        }  # fmt: skip


# ------------------------------------------------------------ results


def test_json_ends_the_output(lanewise: Command) -> None:
    outcome = lanewise(*CAVITY, "--steps", 20, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.last_json
    assert {n: found[n] for n in ("case", "device", "lattice", "collision", "shape", "steps", "step")} == {
        "case": "cavity", "device": "cpu", "lattice": "D2Q9", "collision": "trt", "shape": [9, 9], "steps": 20, "step": 20,
    }  # fmt: skip
    assert (found["storage"], found["precision"], found["streaming"]) == ("f32", "f32", "in-place")
    assert found["seconds"] > 0
    assert found["mlups"] == pytest.approx(81 * 20 / found["seconds"] / 1e6)
    assert found["bandwidth_fraction"] > 0
    assert abs(found["mass_drift"]) < 1e-6
    assert set(found["results"]) == {"vortex_x", "vortex_y", "ghia_u_deviation", "ghia_v_deviation"}
    assert "cavity at Re 100: 9 x 9 sites, 20 steps to step 20 on cpu (D2Q9, trt, f32, in-place, soa)" in outcome.out


def test_a_steady_flow_ends_the_run(lanewise: Command) -> None:
    found = lanewise("lbm", "run", "channel", "--size", 8, "--precision", "f64", "--json").last_json
    assert found["steady"] is True
    assert found["change"] < 1e-9
    assert found["step"] < 128_000
    assert found["results"]["profile_error"] < 1e-7
    limited = lanewise(*CAVITY, "--until-steady", "--steps", 100, "--json").last_json
    assert (limited["steady"], limited["step"]) == (False, 100)


def test_every_file_of_a_run(lanewise: Command) -> None:
    outcome = lanewise(
        "lbm", "run", "karman", "--size", 4, "--steps", 60, "--out", "a.h5", "--vti", "a.vti", "--plot", "a.png",
        "--movie", "a.gif", "--every", 20, "--forces", "a.csv", "--json",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert sorted(p.name for p in Path().iterdir()) == ["a.csv", "a.gif", "a.h5", "a.png", "a.vti"]
    with h5py.File("a.h5") as file:
        assert (file["density"].shape, file["velocity"].shape) == ((48, 96), (48, 96, 2))
        assert (file.attrs["case"], file.attrs["re"], file.attrs["step"]) == (b"karman", 100.0, 60)
        assert file["velocity"][:, 0, 0] == pytest.approx(0.1)
        history = np.asarray(file["history/drag"])
    with Path("a.csv").open() as table:
        rows = list(csv.DictReader(line for line in table if not line.startswith("#")))
    assert [int(r["step"]) for r in rows] == list(range(5, 61, 5))
    assert [float(r["drag"]) for r in rows] == list(history)
    assert b"ImageData" in Path("a.vti").read_bytes()[:200]


def test_a_mask_and_a_mesh_take_the_place_of_the_body(lanewise: Command) -> None:
    from PIL import Image

    picture = np.full((48, 96), 255, np.uint8)
    picture[20:30, 24:28] = 0
    Image.fromarray(picture).save("bar.png")
    outcome = lanewise(
        "lbm", "run", "karman", "--size", 4, "--mask", "bar.png", "--steps", 5, "--json", "--out", "a.h5"
    )
    assert outcome.code == 0, outcome.err
    assert (
        outcome.err
        == "bar.png: 96 x 48 pixels scaled by 1 to 96 x 48 sites at x = 0..95, y = 0..47, in 96 x 48 sites; 0.868 % of the sites are solid\n"
    )
    assert outcome.last_json["results"]["diameter"] == 10
    with h5py.File("a.h5") as file:
        solid = np.asarray(file["solid"], bool)
    assert solid[18:28, 24:28].all()
    assert solid.sum() == 40
    resumed = lanewise("lbm", "run", "--resume", "a.h5", "--steps", 5, "--json")
    assert resumed.last_json["results"]["diameter"] == 10


# ------------------------------------------------------------ refusals


def test_a_checkpoint_without_the_measurement_of_its_step(lanewise: Command) -> None:
    """The next value is a mean with it."""
    assert lanewise("lbm", "run", "karman", "--size", 4, "--steps", 10, "--out", "a.h5").code == 0
    with h5py.File("a.h5", "r+") as file:
        rows = np.asarray(file["lanewise/run/series"])
        del file["lanewise/run/series"]
        file["lanewise/run/series"] = rows[:-1]
        renew_sums(file)
    before = Path("a.h5").read_bytes()
    outcome = lanewise("lbm", "run", "--resume", "a.h5", "--steps", 2)
    assert_refused(outcome, "a.h5: damaged checkpoint: the measurement of step 10 is missing")
    assert Path("a.h5").read_bytes() == before


OPTIONS: dict[str, tuple[str, str]] = {
    "case": ("pipe", "unknown case 'pipe'; wanted one of cavity, channel, cylinder, duct, karman, sphere, taylor-green"),
    "no case": ("", "no case is named; wanted one of cavity, channel, cylinder, duct, karman, sphere, taylor-green, or --resume FILE"),
    "re": ("cavity --re -5", "the Reynolds number is -5; wanted a finite number above zero"),
    "tau": (
        "cavity --re 1e10",
        "the relaxation time tau is 0.5 + 3.9e-09, which float32 cannot tell from 0.5; a lower Reynolds number, more sites or "
        "a higher lattice velocity raise it",
    ),
    "mach": (
        "cavity --speed 0.2",
        "the speed of the case, the lid's velocity, is 0.2 sites per step, Mach 0.35; wanted at most 0.1732, Mach 0.3: choose a "
        "lower lattice velocity (the same flow then takes more steps)",
    ),
    "size": ("cavity --size 2", "the size is 2; wanted 4 to 1,048,576 sites along a side"),
    "steps": ("cavity --steps 0", "the number of steps is 0; wanted an integer from 1 to 1,000,000,000,000"),
    "collision": ("cavity --collision x", "unknown collision operator 'x'; wanted one of bgk, trt, regularised, mrt, kbc"),
    "smagorinsky": (
        "cavity --collision kbc --smagorinsky 0.1",
        "the collision operator 'kbc' is not combined with Smagorinsky's model; wanted one of bgk, trt, regularised",
    ),
    "lattice": ("cavity --lattice D2Q5", "cavity runs on D2Q9, D3Q19, D3Q27, found lattice 'D2Q5'; did you mean 'D2Q9'?"),
    "storage": ("cavity --storage f16", "storage f16 is for GPUs, which convert float16 in one instruction; on a CPU choose storage f32"),
    "streaming": ("cavity --streaming x", "unknown streaming 'x'; wanted one of pull, push, in-place"),
    "tolerance": (
        "cavity --tolerance 1e-9",
        "the tolerance 1e-09 cannot be met: rounding alone changes velocities by about 2e-06 in storage f32; wanted 2e-06 or "
        "more, or precision f64",
    ),
    "no tolerance": ("cavity --tolerance 0", "the tolerance is 0; wanted above 0 and below 1: a relative change of the velocity"),
    "tolerance of nothing": (
        "cavity --steps 10 --tolerance 1e-3",
        "the tolerance 0.001 would not be looked at, because this run takes all its steps; add --until-steady",
    ),
    "tolerance of unsteady flow": (
        "karman --tolerance 1e-3",
        "the tolerance 0.001 would not be looked at, because this run takes all its steps; add --until-steady",
    ),
    "flat mesh": (
        "karman --stl a.stl",
        "--stl a.stl: a mesh has three dimensions, and this case two; wanted the case sphere, or --mask with a picture of the body's section",
    ),
    "device": (
        "cavity --device gpu",
        "unknown device 'gpu'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)",
    ),
    "forces": ("cavity --forces a.csv", "cavity measures nothing on the way that --forces could write"),
    "every": ("cavity --every 5", "--every needs --movie: it is the number of steps between two of its frames"),
    "checkpoints": ("cavity --checkpoint-every 5", "--checkpoint-every needs --out: checkpoints go there"),
    "picture": ("cavity --plot a.jpg", "--plot a.jpg: wanted a name that ends in .png"),
    "movie": ("cavity --movie a.avi", "--movie a.avi: wanted a name that ends in .gif or .mp4"),
    "one file for two": ("cavity --out a.h5 --plot ./a.h5", "--plot a.h5 is also the file of --out; wanted another one"),
    "folder": ("cavity --out none/a.h5", "none/a.h5: the folder none does not exist; create it first"),
    "mask": ("karman --mask a.png", "a.png: there is no such file; wanted a picture (PNG, JPEG)"),
    "no body": ("cavity --mask a.png", "cavity has no obstacle that a mask or a mesh could replace; wanted karman or sphere"),
    "two bodies": ("sphere --mask a.npy --stl a.stl", "--mask and --stl both name an obstacle; wanted one of them"),
    "no checkpoint": ("--resume a.h5", "a.h5: there is no such file"),
    "resumed case": ("cavity --resume a.h5", "CASE cannot be given with --resume: the checkpoint keeps its own"),
    "unknown walls": (
        "cylinder --walls rough", "unknown walls 'rough'; wanted one of interpolated, half-way"
    ),
    "flat walls": (
        "channel --walls interpolated",
        "--walls interpolated: the surface of the walls of channel is not known: flat walls and bodies from pictures or arrays are "
        "half-way",
    ),
    "resumed walls": (
        "--resume a.h5 --walls half-way", "--walls cannot be given with --resume: the checkpoint keeps its own"
    ),
    "resumed re": ("--resume a.h5 --re 5", "--re cannot be given with --resume: the checkpoint keeps its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_refused_before_anything_is_written(lanewise: Command, name: str) -> None:
    options, message = OPTIONS[name]
    assert_refused(lanewise("lbm", "run", *options.split()), message)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("case", [pytest.param("cylinder", marks=pytest.mark.slow), "karman"])
def test_round_bodies_are_interpolated(lanewise: Command, case: str) -> None:
    outcome = lanewise("lbm", "run", case, "--size", 8, "--steps", 20, "--out", "a.h5", "--json")
    links = outcome.last_json["interpolated_links"]
    assert links > 50
    assert f"walls interpolated on {links:,} links\n" in outcome.out
    resumed = lanewise("lbm", "run", "--resume", "a.h5", "--steps", 1, "--json")
    assert resumed.last_json["interpolated_links"] == links
    stairs = lanewise("lbm", "run", case, "--size", 8, "--steps", 20, "--walls", "half-way", "--json")
    assert stairs.last_json["interpolated_links"] == 0
    assert "interpolated" not in stairs.out.splitlines()[2]


def test_a_mask_of_another_shape(lanewise: Command) -> None:
    np.save("a.npy", np.ones((96, 48), bool))
    message = "a.npy: the mask has shape (96, 48); wanted (ny, nx) = (48, 96): its axes are in the order x, y, z, so give mask.T"
    assert_refused(lanewise("lbm", "run", "karman", "--size", 4, "--mask", "a.npy"), message)


def test_unknown_kinds_in_a_mask(lanewise: Command) -> None:
    mask = np.zeros((48, 96), int)
    mask[3, 7] = 5
    np.save("a.npy", mask)
    message = (
        "a.npy: the mask holds kind 5 at 1 site (at (y, x) = (3, 7)); wanted one of the kinds 0 (fluid), 1 (solid)"
    )
    assert_refused(lanewise("lbm", "run", "karman", "--size", 4, "--mask", "a.npy"), message)


def test_an_open_mesh(lanewise: Command) -> None:
    Path("a.stl").write_text(
        "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid a\n"
    )
    outcome = lanewise("lbm", "run", "sphere", "--size", 4, "--stl", "a.stl", "--out", "a.h5")
    assert (outcome.code, outcome.out) == (2, "")
    assert "a.stl: the mesh is not closed: 3 open edges of 1 triangles" in outcome.err
    assert not Path("a.h5").exists()


def test_a_size_that_does_not_fit_the_memory(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.sims.common.meshes.available_memory", lambda device: 1_000_000)
    outcome = lanewise("lbm", "run", "cavity", "--size", 512, "--out", "a.h5")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("error: 512 x 512 sites of D2Q9 stored as f32 with in-place streaming need ")
    assert "0.001 GB are available" in outcome.err
    assert list(Path().iterdir()) == []
    from lanewise.language.lattices import D2Q9

    assert memory_bytes((512, 512), D2Q9, "f32", "in-place") > 1_000_000


def test_a_box_whose_beginning_does_not_fit_the_memory(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the case makes its mask and its velocities."""
    monkeypatch.setattr("lanewise.sims.lbm.runner.available_memory", lambda device: 2_000_000_000)
    monkeypatch.setattr("lanewise.sims.common.meshes.available_memory", lambda device: 2_000_000_000)
    outcome = lanewise("lbm", "run", "karman", "--size", 400, "--out", "a.h5")
    assert_refused(
        outcome,
        "--size 400 makes about 9600 x 4800 sites, whose initial state takes 5.53 GB of main memory, and 2 GB are available; "
        "wanted a smaller size",
    )
    outcome = lanewise(
        "lbm", "run", "sphere", "--size", 5000, "--storage", "f64", "--streaming", "pull", "--out", "a.h5"
    )
    assert outcome.code == 2
    assert outcome.err == (
        "error: 60000 x 40000 x 40000 sites of D3Q19 stored as f64 with pull streaming need 29,568,000 GB, and 2 GB are available; "
        "use at most 244 x 162 x 162 sites\n"
    )
    assert list(Path().iterdir()) == []


def test_a_relaxation_time_just_above_a_half_is_warned_of(lanewise: Command) -> None:
    outcome = lanewise("lbm", "run", "cavity", "--size", 8, "--re", 1000, "--steps", 2, "--lattice", "d2q9")
    assert outcome.code == 0
    assert outcome.err == (
        "warning: the relaxation time tau is 0.5024; with TRT expect instability below 0.505: use another collision operator (kbc is the "
        "most stable one), more sites or a lower Reynolds number\n"
    )


@pytest.mark.parametrize(
    ("option", "name"), [("--out", "a.h5"), ("--plot", "a.png"), ("--vti", "a.vti"), ("--movie", "a.gif")]
)
def test_an_existing_file_is_kept(lanewise: Command, option: str, name: str) -> None:
    Path(name).write_text("precious")
    outcome = lanewise(*CAVITY, "--steps", 3, option, name)
    assert_refused(outcome, f"{name}: the file exists already; give --overwrite to replace it")
    assert Path(name).read_text() == "precious"
    assert lanewise(*CAVITY, "--steps", 3, option, name, "--overwrite").code == 0
    assert Path(name).read_bytes() != b"precious"


def test_a_blow_up_keeps_the_last_checkpoint(lanewise: Command) -> None:
    unstable = ("lbm", "run", "karman", "--size", 8, "--re", 100_000, "--collision", "trt")
    outcome = lanewise(*unstable, "--out", "a.h5", "--checkpoint-every", 10)
    assert (outcome.code, outcome.out) == (2, "")
    warning, error = outcome.err.splitlines()
    assert warning.startswith("warning: the relaxation time tau is 0.500024; with TRT expect instability below 0.505: ")
    assert error.startswith("error: the flow blew up between step ")
    assert "site (y, x) = (" in outcome.err
    with h5py.File("a.h5") as file:
        assert np.isfinite(np.asarray(file["density"])).all()
        assert int(file["lanewise"].attrs["step"]) % 10 == 0


def test_a_velocity_that_alternates_is_said(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a limit that every flow is above."""
    quiet = lanewise(*CAVITY, "--steps", 5, "--json")
    assert quiet.err == ""
    assert 0 <= quiet.last_json["stagger"] < 0.02
    monkeypatch.setattr("lanewise.sims.lbm.watch.MOST", -1)
    said = lanewise(*CAVITY, "--steps", 5, "--json")
    assert said.err.startswith("warning: the velocity goes up and down from site to site along ")
    assert len(said.err.splitlines()) == 1
    assert said.last_json["results"] == quiet.last_json["results"]


# ------------------------------------------------------------ going on


@pytest.mark.quick("parts0", "parts2")
@pytest.mark.parametrize("parts", [(1, 22), (9, 14), (8, 8, 7)])
def test_parts_give_the_bits_of_the_whole(lanewise: Command, parts: tuple[int, ...]) -> None:
    run = ("lbm", "run", "karman", "--size", 4)
    assert lanewise(*run, "--steps", 23, "--out", "whole.h5", "--forces", "whole.csv").code == 0
    assert lanewise(*run, "--steps", parts[0], "--out", "parts.h5", "--forces", "parts.csv").code == 0
    for part in parts[1:]:
        outcome = lanewise("lbm", "run", "--resume", "parts.h5", "--steps", part, "--forces", "parts.csv")
        assert (outcome.code, outcome.err) == (0, "")
    assert state("parts.h5") == state("whole.h5")
    assert Path("parts.csv").read_text() == Path("whole.csv").read_text()


def test_a_series_that_is_not_whole_is_not_continued(lanewise: Command) -> None:
    lanewise("lbm", "run", "karman", "--size", 4, "--steps", 30, "--out", "a.h5", "--forces", "a.csv")
    lines = Path("a.csv").read_text().splitlines(keepends=True)
    more = ("lbm", "run", "--resume", "a.h5", "--steps", 10, "--forces", "a.csv")
    for kept, end in ((lines[:-2], "ends with step 25"), (lines[:1], "has no lines")):
        Path("a.csv").write_text("".join(kept))
        assert_refused(
            lanewise(*more),
            f"a.csv: the series {end}, and the checkpoint has measured until step 30; wanted the series of this run, or a new file",
        )
    Path("a.csv").write_text("".join([*lines[:-2], lines[-2].replace("30,", "30,1"), lines[-1]]))
    changed = lanewise(*more)
    assert changed.code == 2
    assert changed.err.endswith("they are not what was written. If you have changed them, delete line 8\n")
    Path("a.csv").unlink()
    assert lanewise(*more).code == 0


def test_a_complete_run_asks_how_many_more(lanewise: Command) -> None:
    lanewise(*CAVITY, "--steps", 5, "--out", "a.h5")
    assert_refused(
        lanewise("lbm", "run", "--resume", "a.h5"), "a.h5 is complete at step 5; say with --steps how many more"
    )


def test_another_streaming_form_is_said(lanewise: Command) -> None:
    lanewise(*CAVITY, "--steps", 5, "--out", "a.h5")
    outcome = lanewise("lbm", "run", "--resume", "a.h5", "--steps", 5, "--streaming", "pull", "--json")
    assert outcome.err == (
        "note: a.h5 was computed with in-place streaming in layout soa; its populations are converted to pull in soa, and the "
        "last places may differ\n"
    )
    assert (outcome.last_json["streaming"], outcome.last_json["step"]) == ("pull", 10)


def test_a_checkpoint_of_the_python_interface_has_no_case(lanewise: Command) -> None:
    from lanewise.sims.lbm import Simulation

    Simulation(shape=(9, 9), viscosity=0.05).checkpoint("a.h5")
    message = "a.h5: a checkpoint without a case, written by Simulation.checkpoint; continue it with Simulation.resume"
    assert_refused(lanewise("lbm", "run", "--resume", "a.h5"), message)


def test_ctrl_c_before_the_first_step_keeps_a_checkpoint(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """While kernels are compiled it waits: what it names is there then."""
    from lanewise.sims.lbm import Simulation

    prepare = Simulation.prepare

    def pressed(simulation: Simulation) -> None:
        signal.raise_signal(signal.SIGINT)
        prepare(simulation)

    with monkeypatch.context() as patched:
        patched.setattr(Simulation, "prepare", pressed)
        outcome = lanewise(*CAVITY, "--no-until-steady", "--steps", 1000, "--out", "a.h5")
    assert (outcome.code, outcome.err) == (130, "interrupted; continue with: lanewise lbm run --resume a.h5\n")
    assert lanewise("lbm", "run", "--resume", "a.h5", "--steps", 3).code == 0


def test_ctrl_c_keeps_a_checkpoint_that_goes_on(lanewise: Command, tmp_path: Path) -> None:
    process = start_process(
        tmp_path, *CAVITY, "--no-until-steady", "--steps", 10**9, "--out", "a.h5", "--checkpoint-every", 1000
    )
    while not (tmp_path / "a.h5").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    *notices, last = err.splitlines()
    assert last == "interrupted; continue with: lanewise lbm run --resume a.h5"
    assert all(line.startswith("compiling kernel") for line in notices)  # said where it takes long, on a busy machine
    assert lanewise("lbm", "run", "--resume", "a.h5", "--steps", 3).code == 0


def test_a_flow_that_is_steady_is_complete(lanewise: Command) -> None:
    """What is resumed ends where it was to end, and not at the next look at a flow that is steady."""
    lanewise("lbm", "run", "channel", "--size", 8, "--until-steady", "--out", "a.h5")
    again = lanewise("lbm", "run", "--resume", "a.h5")
    assert (again.code, again.err.strip()) == (
        2, "error: a.h5 is complete at step 1,280, where the flow is steady; say with --steps how many more",
    )  # fmt: skip
    assert lanewise("lbm", "run", "--resume", "a.h5", "--steps", 10).code == 0


@pytest.mark.parametrize(("steps", "settled"), [(40, False), (960, True)])
def test_forces_of_a_flow_that_has_only_begun_are_said_to_be_those_of_its_start(
    lanewise: Command, steps: int, settled: bool
) -> None:
    """The stream of this box crosses it in 24 diameters / speed = 960 steps."""
    said = lanewise("lbm", "run", "karman", "--size", 4, "--steps", steps, "--json")
    note = f"not settled: the stream crosses the box in about 960 steps, and this is step {steps}; "
    assert (note in said.out) is not settled
    results = said.last_json["results"]
    assert results.get("measured_at_step", "periods") == ("periods" if "periods" in results else steps // 5 * 5)


def test_a_flow_in_caches_says_why_it_beats_a_copy() -> None:
    from lanewise.sims.lbm.command import _share  # pyright: ignore[reportPrivateUsage]

    assert _share(0.5) == ", 50.0 % of the bandwidth of a copy"
    assert _share(1.24) == ", 124.0 % of the bandwidth of a copy; the populations stay in caches, which are faster"
