"""Every mistake of a user: exit code 2, one clear text on standard error, no output, no traceback, no file changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.runtime import devices
from lanewise.sims.gravity import runner
from lanewise.support.installation import install
from tests.cli.command import Command, Outcome

COLUMNS = "x,y,z,vx,vy,vz,mass\n"


def assert_refused(outcome: Outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")


OPTIONS: dict[str, tuple[str, str]] = {
    "no bodies": ("--bodies 0", "0 bodies requested; wanted at least 1"),
    "negative bodies": ("--bodies -5", "-5 bodies requested; wanted at least 1"),
    "wrong bodies": ("--ic figure-eight --bodies 4", "figure-eight has exactly 3 bodies; 4 requested"),
    "no steps": ("--steps 0", "the number of steps is 0; wanted an integer from 1 to 1,000,000,000,000"),
    "negative steps": ("--steps -1", "the number of steps is -1; wanted an integer from 1 to 1,000,000,000,000"),
    "many steps": (
        "--steps 1000000000001",
        "the number of steps is 1000000000001; wanted an integer from 1 to 1,000,000,000,000",
    ),
    "zero dt": ("--dt 0", "the time step dt is 0.0; wanted a finite time above zero"),
    "negative dt": ("--dt -1", "the time step dt is -1.0; wanted a finite time above zero"),
    "nan dt": ("--dt nan", "the time step dt is nan; wanted a finite time above zero"),
    "infinite dt": ("--dt inf", "the time step dt is inf; wanted a finite time above zero"),
    "long dt": ("--dt 1e300", "the time step dt is 1e+300; bodies in f32 move by at most 1.7e+38 at a time"),
    "negative softening": ("--softening -1", "the softening is -1.0; wanted a finite length of zero or more"),
    "nan softening": ("--softening nan", "the softening is nan; wanted a finite length of zero or more"),
    "infinite softening": ("--softening inf", "the softening is inf; wanted a finite length of zero or more"),
    "long softening": (
        "--softening 1e30",
        "the softening is 1e+30; forces in f32 hold lengths up to 7e+12: use precision f64 or another unit of length",
    ),
    "zero G": ("-G 0", "the gravitational constant is 0.0; wanted a finite number above zero"),
    "nan G": ("-G nan", "the gravitational constant is nan; wanted a finite number above zero"),
    "integrator": ("--integrator foo", "unknown integrator 'foo'; wanted one of euler, leapfrog, yoshida4"),
    "precision": ("--precision f16", "unknown precision 'f16'; did you mean 'f64'? wanted one of f32, f64, mixed"),
    "layout": (
        "--layout foo",
        "unknown layout 'foo'; wanted aos, soa, aoas, soaoas, aosoa, or a width with it as in aosoa(16)",
    ),
    "letters in another order": (
        "--layout sao",
        "unknown layout 'sao'; did you mean 'soa'? wanted aos, soa, aoas, soaoas, aosoa, or a width with it as in aosoa(16)",
    ),
    "seed": ("--seed -1", "the seed is -1; wanted zero or more"),
    "ic": (
        "--ic foo",
        "unknown initial condition 'foo'; wanted one of galaxies, figure-eight, plummer, pythagorean, two-body, "
        "uniform-sphere, a file (Gadget HDF5, Tipsy, NPZ, CSV), or script.py:function",
    ),
    "file": ("--ic foo.h5", "foo.h5: there is no such file"),
    "checkpoint": ("--resume foo.h5", "foo.h5: there is no such file"),
    "folder": ("--out none/a.h5", "none/a.h5: the folder none does not exist; create it first"),
    "out is a folder": ("--out .", ".: exists and is not a regular file; wanted the name of a file to write"),
    "one file for two": ("--out a.png --plot a.png", "--plot a.png would replace the checkpoint; wanted another file"),
    "picture of a checkpoint": (
        "--resume a.png --plot ./a.png",
        "--plot a.png would replace the checkpoint; wanted another file",
    ),
    "no picture": ("--plot a.jpg", "--plot a.jpg: pictures are PNG; wanted a name that ends in .png"),
    "no name": ("--snapshot-every 1", "--snapshot-every needs --out: snapshots get its name and the step"),
    "device": (
        "--device gpu",
        "unknown device 'gpu'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)",
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_out_of_range(lanewise: Command, name: str) -> None:
    options, message = OPTIONS[name]
    small = () if any(o in options for o in ("--ic", "--bodies", "--resume")) else ("--bodies", 10)
    assert_refused(lanewise("gravity", "run", *small, *options.split()), message)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ("gravity run --foo", "No such option: --foo"),
        ("gravity run --bodies many", "Invalid value for '--bodies'"),
        ("gravity run --dt", "Option '--dt' requires an argument"),
        ("gravity run --diagnostics-every -1", "Invalid value for '--diagnostics-every'"),
        ("gravity run --snapshot-every -1", "Invalid value for '--snapshot-every'"),
        ("gravity run --checkpoint-seconds nan", "Invalid value for '--checkpoint-seconds'"),
        ("gravity fly", "No such command 'fly'"),
        ("fly", "No such command 'fly'"),
    ],
)
def test_usage_errors(lanewise: Command, options: str, word: str) -> None:
    outcome = lanewise(*options.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert word in outcome.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "foo",
            "unknown kernel 'foo'; wanted boids, gravity, lbm, waves, or a kernel of a file as in path/to/file.py:name",
        ),
        ("gravity --source x", "unknown device 'x'; wanted cpu or cuda"),
        ("gravity --device x", "unknown device 'x'; wanted cpu or cuda"),
        ("gravity --precision x", "unknown precision 'x'; wanted one of f32, f64, mixed"),
    ],
)
def test_explain_refuses(lanewise: Command, options: str, message: str) -> None:
    assert_refused(lanewise("explain", *options.split()), message)


def test_cuda_without_a_gpu_is_never_replaced(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = f"the package cupy-cuda13x is not installed: {install('cuda')}"
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: (missing,))
    message = f"device 'cuda' cannot be used:\n  - {missing}"
    assert_refused(lanewise("gravity", "run", "--device", "cuda", "--out", "a.h5"), message)
    assert list(Path().iterdir()) == []


def test_too_many_bodies_say_what_they_need(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lanewise.runtime.memory.available_memory", lambda device: 1_000_000)
    message = "making 1,000,000,000,000 bodies needs 240,000,000,000,000 bytes on 'cpu', and 1,000,000 are available"
    assert_refused(lanewise("gravity", "run", "--bodies", 10**12), message)


@pytest.mark.parametrize(("option", "name"), [("--out", "a.h5"), ("--plot", "a.png")])
def test_an_existing_file_is_kept(lanewise: Command, option: str, name: str) -> None:
    Path(name).write_text("precious")
    outcome = lanewise("gravity", "run", "--bodies", 10, option, name)
    assert_refused(outcome, f"{name}: the file exists already; give --overwrite to replace it")
    assert Path(name).read_text() == "precious"


def test_an_existing_snapshot_is_kept(lanewise: Command) -> None:
    Path("a_00000002.h5").write_text("precious")
    run = ("gravity", "run", "--bodies", 10, "--steps", 4, "--out", "a.h5", "--snapshot-every", 2)
    assert_refused(lanewise(*run), "a_00000002.h5: the file exists already; give --overwrite to replace it")
    assert [p.name for p in Path().iterdir()] == ["a_00000002.h5"]
    assert lanewise(*run, "--overwrite").code == 0


@pytest.mark.parametrize("field", ["position", "velocity", "mass"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_in_a_file_is_named_with_its_index(lanewise: Command, field: str, value: float) -> None:
    arrays = {"position": np.zeros((5, 3)), "velocity": np.zeros((5, 3)), "mass": np.ones(5)}
    arrays[field][3, ...] = value
    np.savez("a.npz", **arrays)  # pyright: ignore[reportArgumentType]
    place = "" if field == "mass" else " in x"
    message = f"a.npz: {field} of body 3 is {value}{place}; wanted a finite number"
    assert_refused(lanewise("gravity", "run", "--ic", "a.npz"), message)


def test_a_cell_that_is_no_number(lanewise: Command) -> None:
    Path("a.csv").write_text(COLUMNS + "0,0,0,0,0,0,1\n0,nan,0,0,0,0,1\n")
    message = "a.csv: line 3, column 2 (y): 'nan'; wanted a finite number"
    assert_refused(lanewise("gravity", "run", "--ic", "a.csv"), message)


@pytest.mark.parametrize("option", ["--ic", "--resume"])
def test_files_that_are_truncated_empty_or_foreign(lanewise: Command, option: str) -> None:
    assert lanewise("gravity", "run", "--bodies", 50, "--steps", 1, "--out", "good.h5").code == 0
    Path("cut.h5").write_bytes(Path("good.h5").read_bytes()[:4000])
    Path("empty.h5").touch()
    Path("foreign.h5").write_bytes(bytes(range(256)) * 4)
    for name in ("cut", "empty", "foreign"):
        outcome = lanewise("gravity", "run", option, f"{name}.h5")
        assert (outcome.code, outcome.out) == (2, "")
        assert outcome.err.startswith(f"error: {name}.h5: ")
        assert outcome.err.count("\n") == 1


def test_bodies_that_float32_cannot_hold(lanewise: Command) -> None:
    Path("a.csv").write_text(COLUMNS + "0,0,0,0,0,0,1\n1e39,0,0,0,0,0,1\n")
    message = "position reaches 1e+39, more than float32 holds; use precision f64"
    assert_refused(lanewise("gravity", "run", "--ic", "a.csv"), message)


def test_distances_whose_squares_float32_cannot_hold(lanewise: Command) -> None:
    """Centimetres between stars: without this error all forces would silently be zero."""
    Path("a.csv").write_text(COLUMNS + "0,0,0,0,0,0,1\n0,1e20,0,0,0,0,1\n")
    message = "a.csv: position of body 1 is (0, 1e+20, 0); forces in f32 reach 1.7e+12: use precision f64 or another unit of length"
    assert_refused(lanewise("gravity", "run", "--ic", "a.csv"), message)
    assert lanewise("gravity", "run", "--ic", "a.csv", "--precision", "f64", "--steps", 1).code == 0


BROKEN = (
    "has no finite position or velocity any more; a smaller dt or more softening keeps close encounters finite; "
    "lengths below 1e-12 need precision f64 or another unit of length"
)


def test_two_bodies_on_one_spot_stop_the_run(lanewise: Command) -> None:
    """The first kick breaks both, and the forces of the new places all others, so it is the first body that
    is named.
    """
    Path("a.csv").write_text(COLUMNS + "5,0,0,0,0,0,1\n0,0,0,0,0,0,1\n0,0,0,0,0,0,1\n")
    outcome = lanewise("gravity", "run", "--ic", "a.csv", "--steps", 3)
    assert_refused(outcome, f"step 1: body 0 {BROKEN}")


def test_two_bodies_on_one_spot_are_fine_with_softening(lanewise: Command) -> None:
    Path("a.csv").write_text(COLUMNS + "0,0,0,0,0,0,1\n0,0,0,0,0,0,1\n")
    assert lanewise("gravity", "run", "--ic", "a.csv", "--steps", 3, "--softening", 0.1).code == 0


@pytest.mark.parametrize("softening", [1e-7, 1e-14, 1e-25])
def test_softening_too_small_for_its_third_power_is_as_good_as_none(lanewise: Command, softening: float) -> None:
    """A body must not meet itself then: 0 * infinity is not a number."""
    run = ("gravity", "run", "--ic", "two-body", "--steps", 3, "--json")
    energy = lanewise(*run).last_json["energy_final"]
    assert lanewise(*run, "--softening", softening).last_json["energy_final"] == pytest.approx(energy)


def test_a_run_that_breaks_names_the_step_and_the_body_and_keeps_its_checkpoint(lanewise: Command) -> None:
    """Without gravity to speak of, body 2 leaves float32 in step 4: 3.4e38 is less than the square of four
    times 5e18.
    """
    Path("a.csv").write_text(COLUMNS + "0,0,0,0,0,0,1e-30\n1,0,0,0,0,0,1e-30\n2,0,0,0,5e18,0,1e-30\n")
    outcome = lanewise("gravity", "run", "--ic", "a.csv", "--steps", 9, "--dt", 1, "--out", "a.h5")
    assert_refused(outcome, f"step 4: body 2 {BROKEN}")
    assert runner.read_checkpoint(Path("a.h5")).step < 4


def test_a_full_disk_is_no_traceback(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("lanewise.io.atomic.os.fsync", full)
    outcome = lanewise("gravity", "run", "--bodies", 10, "--out", "a.h5")
    assert_refused(outcome, f"a.h5: cannot be written into the folder {Path.cwd()}: No space left on device")
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    "product", ["gravity run --ic plummer --bodies 8", "lbm run cavity --size 8", "boids run --agents 8"]
)
def test_a_name_that_promises_another_format_is_refused(lanewise: Command, product: str) -> None:
    outcome = lanewise(*f"{product} --steps 1 --out x.npz".split())
    assert_refused(outcome, "--out x.npz: wanted a name that ends in .h5 or .hdf5")


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("gravity run --ic plumer", "unknown initial condition 'plumer'; did you mean 'plummer'? wanted one of galaxies"),
        ("gravity run --integrator leepfrog", "unknown integrator 'leepfrog'; did you mean 'leapfrog'? wanted one of"),
        ("gravity run --precision fp64", "unknown precision 'fp64'; did you mean 'f64'? wanted one of f32"),
        ("lbm run karmann", "unknown case 'karmann'; did you mean 'karman'? wanted one of cavity"),
        ("explain gravit", "unknown kernel 'gravit'; did you mean 'gravity'? wanted boids, gravity, lbm, waves, or a kernel of a file"),
        ("ladder tutoral", "unknown ladder 'tutoral'; did you mean 'tutorial'? wanted one of"),
    ],
)  # fmt: skip
def test_names_that_are_nearly_right(lanewise: Command, words: str, near: str) -> None:
    outcome = lanewise(*words.split())
    assert outcome.code == 2
    assert near in outcome.err


def test_numbers_with_an_exponent(lanewise: Command) -> None:
    outcome = lanewise(*"gravity run --bodies 1e1 --steps 1_0 --dt 1e-3 --quiet --json".split())
    assert outcome.last_json["bodies"] == 10
    assert "10,000 target" in lanewise("explain", "gravity", "--bodies", "1e4").out
    for text in ("1.5", "many", "inf", "nan"):
        outcome = lanewise("gravity", "run", "--bodies", text)
        assert outcome.code == 2
        assert f"{text!r} is not an integer" in " ".join(outcome.err.replace("│", " ").split())
    for text in ("1e19", "9223372036854775808", "-1e300"):
        outcome = lanewise("gravity", "run", "--snapshot-every", text)
        assert outcome.code == 2
        assert f"{text} is too large; wanted at most 9,223,372" in " ".join(outcome.err.replace("│", " ").split())


def test_the_version(lanewise: Command) -> None:
    assert lanewise("--version").out == f"lanewise {lw.__version__}\n"


@pytest.mark.parametrize("words", ["", "gravity", "gravity run", "explain", "waves fstat"])
def test_short_help(lanewise: Command, words: str) -> None:
    assert lanewise(*words.split(), "-h").out == lanewise(*words.split(), "--help").out
