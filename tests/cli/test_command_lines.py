"""The two command lines of the README, and what `gravity run` prints."""

from __future__ import annotations

import json
import shlex
import struct
from pathlib import Path
from typing import Any

import pytest

from lanewise.cli.links import lines_of_links
from lanewise.support.installation import install
from tests.cli.command import Command, state
from tests.cli.test_user_errors import assert_refused

KEYS = {
    "device", "bodies", "steps", "dt", "integrator", "softening", "precision", "layout", "seconds", "pairs_per_second",
    "energy_initial", "energy_final", "energy_drift", "momentum_drift", "virial_ratio", "out",
}  # fmt: skip
MAIN = (
    "gravity run --ic plummer --bodies 16384 --steps 100 --dt 0.001 --softening 0.02 --device cpu "
    "--out run.h5 --plot run.png --json"
)
RESUME = "gravity run --resume run.h5 --steps 50 --json"


def facts(summary: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: summary[name] for name in names}


@pytest.mark.slow
def test_the_main_job_as_written(lanewise: Command) -> None:
    first = lanewise(*shlex.split(MAIN))
    assert (first.code, first.err) == (0, "")
    summary = first.last_json
    assert summary.keys() >= KEYS
    assert facts(summary, "device", "bodies", "steps", "dt", "integrator") == {
        "device": "cpu", "bodies": 16384, "steps": 100, "dt": 0.001, "integrator": "leapfrog",
    }  # fmt: skip
    assert facts(summary, "softening", "precision", "layout", "out") == {
        "softening": 0.02, "precision": "f32", "layout": "soa", "out": "run.h5",
    }  # fmt: skip
    # E = -1/4 and 2K/|W| = 1 for a Plummer sphere, within sampling noise of 16384 bodies and the softening.
    assert summary["energy_initial"] == pytest.approx(-0.25, abs=0.01)
    assert summary["virial_ratio"] == pytest.approx(1.0, abs=0.05)
    assert abs(summary["energy_drift"]) < 1e-6
    assert summary["momentum_drift"] < 1e-6
    assert summary["pairs_per_second"] == pytest.approx(16384**2 * 100 / summary["seconds"])
    png = Path("run.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (2040, 990)

    second = lanewise(*shlex.split(RESUME))
    assert (second.code, second.err) == (0, "")
    resumed = second.last_json
    assert resumed.keys() >= KEYS
    assert facts(resumed, "steps", "step", "out") == {"steps": 50, "step": 150, "out": "run.h5"}
    assert resumed["time"] == pytest.approx(0.15)
    assert resumed["energy_initial"] == summary["energy_initial"]


def run(*more: object) -> tuple[object, ...]:
    return ("gravity", "run", "--bodies", 64, "--steps", 4, "--softening", 0.1, *more)


def test_json_is_the_last_line_and_text_comes_before(lanewise: Command) -> None:
    outcome = lanewise(*run("--json"))
    lines = outcome.out.splitlines()
    assert lines[0] == "64 bodies, 4 steps to t = 0.004 on cpu in soa, f32"
    assert sum(line.startswith("{") for line in lines) == 1
    assert outcome.last_json["out"] is None
    assert outcome.err == ""


def test_without_json_there_is_only_text(lanewise: Command) -> None:
    outcome = lanewise(*run("--out", "a.h5"))
    assert outcome.out.splitlines()[-1] == "written to a.h5"
    assert "{" not in outcome.out


def test_numbers_that_do_not_exist_are_null(lanewise: Command) -> None:
    """One body has no potential energy, so no virial ratio; NaN is not JSON."""
    assert lanewise("gravity", "run", "--bodies", 1, "--steps", 1, "--json").last_json["virial_ratio"] is None


def test_defaults(lanewise: Command) -> None:
    summary = lanewise("gravity", "run", "--bodies", 32, "--steps", 1, "--json").last_json
    assert summary.pop("softening") == pytest.approx(0.1495434)  # half the distance of neighbours
    assert facts(summary, "ic", "dt", "integrator", "precision", "layout", "device") == {
        "ic": "plummer", "dt": 0.001, "integrator": "leapfrog", "precision": "f32", "layout": "soa", "device": "cpu",
    }  # fmt: skip


@pytest.mark.parametrize("ic", ["plummer", "uniform-sphere", "two-body", "figure-eight", "pythagorean", "galaxies"])
def test_every_initial_condition_runs(lanewise: Command, ic: str) -> None:
    sampled = ("--bodies", 60, "--softening", 0.05) if ic in ("plummer", "uniform-sphere", "galaxies") else ()
    outcome = lanewise("gravity", "run", "--ic", ic, *sampled, "--steps", 5, "--precision", "f64", "--json")
    assert outcome.code == 0, outcome.err
    assert abs(outcome.last_json["energy_drift"]) < 1e-3


@pytest.mark.filterwarnings("ignore::lanewise.FileWarning")  # CSV has no place for the softening
@pytest.mark.parametrize("suffix", [".h5", ".tipsy", ".npz", ".csv"])
def test_own_files_of_every_format_run(lanewise: Command, suffix: str) -> None:
    from lanewise.io import write_particles
    from lanewise.sims.gravity import make_initial_conditions

    write_particles(f"own{suffix}", make_initial_conditions("plummer", 50, 3))
    outcome = lanewise("gravity", "run", "--ic", f"own{suffix}", "--steps", 2, "--softening", 0.1, "--json")
    assert outcome.code == 0, outcome.err
    assert outcome.last_json["bodies"] == 50


def test_softening_of_a_file_is_taken_over(lanewise: Command) -> None:
    lanewise(*run("--out", "a.h5"))
    assert lanewise("gravity", "run", "--ic", "a.h5", "--steps", 1, "--json").last_json["softening"] == 0.1


def test_snapshots_are_written_on_the_way(lanewise: Command) -> None:
    lanewise(*run("--out", "a.h5", "--snapshot-every", 2))
    assert sorted(p.name for p in Path().iterdir()) == ["a.h5", "a_00000002.h5", "a_00000004.h5"]
    assert state(Path("a_00000004.h5")) == state(Path("a.h5"))
    assert state(Path("a_00000002.h5"))["step"] == 2


def test_a_snapshot_can_be_resumed_to_the_same_bits(lanewise: Command) -> None:
    lanewise(*run("--out", "a.h5", "--snapshot-every", 3))
    lanewise("gravity", "run", "--resume", "a_00000003.h5", "--out", "b.h5")
    assert state(Path("b.h5")) == state(Path("a.h5"))


def test_overwrite_replaces(lanewise: Command) -> None:
    Path("a.h5").write_text("old")
    Path("a.png").write_text("old")
    assert lanewise(*run("--out", "a.h5", "--plot", "a.png", "--overwrite")).code == 0
    assert state(Path("a.h5"))["step"] == 4
    assert Path("a.png").read_bytes()[1:4] == b"PNG"


def test_the_energy_drift_is_that_of_the_whole_run(lanewise: Command) -> None:
    whole = lanewise("gravity", "run", "--bodies", 64, "--steps", 8, "--softening", 0.1, "--json").last_json
    lanewise(*run("--out", "a.h5"))
    resumed = lanewise("gravity", "run", "--resume", "a.h5", "--steps", 4, "--json").last_json
    same = ("energy_initial", "energy_final", "energy_drift", "momentum_drift", "virial_ratio", "time", "step")
    assert facts(resumed, *same) == facts(whole, *same)


def test_info(lanewise: Command) -> None:
    outcome = lanewise("info")
    assert (outcome.code, outcome.err) == (0, "")
    for word in ("devices", "cpu", "packages", "llvmlite", "cache"):
        assert word in outcome.out
    machine = lanewise("info", "--json")
    found = json.loads(machine.out)
    assert machine.out.count("\n") == 1
    assert found.keys() >= {"lanewise", "python", "devices", "cuda_missing", "versions", "cache"}
    assert found["devices"][0]["name"] == "cpu"


def test_info_of_links(lanewise: Command) -> None:
    outcome = lanewise("info", "--devices")
    assert (outcome.code, outcome.err) == (0, "")
    assert "links, with bytes copied per second\n  from" in outcome.out
    (link,) = (x for x in lanewise("info", "--devices", "--json").last_json["links"] if x["from"] == x["to"] == "cpu")
    assert link["link"] == "memory of the host"
    assert link["bytes_per_second"] > 1e6


def test_links_are_a_matrix() -> None:
    links = [
        {"from": a, "to": b, "link": "one device" if a == b else "NVLink", "bytes_per_second": rate}
        for a, b, rate in (
            ("cuda", "cuda", 1.5e12),
            ("cuda", "cuda:1", 3.95e11),
            ("cuda:1", "cuda", None),
            ("cuda:1", "cuda:1", 2e12),
        )
    ]
    assert lines_of_links(links) == [
        "from    to cuda                   to cuda:1",
        "cuda    1,500.0 GB/s, one device  395.0 GB/s, NVLink",
        "cuda:1  NVLink                    2,000.0 GB/s, one device",
    ]


def test_info_says_what_cuda_needs(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = f"the package cupy-cuda13x is not installed: {install('cuda')}"
    monkeypatch.setattr("lanewise.runtime.devices.missing_for_cuda", lambda: (missing,))
    assert f"cuda is not available:\n  - {missing}\n" in lanewise("info").out
    assert lanewise("info", "--json").last_json["cuda_missing"] == [missing]


@pytest.mark.parametrize("command", [(), ("gravity",), ("gravity", "run"), ("info",), ("explain",)])
def test_help_names_every_option_within_100_columns(
    lanewise: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    outcome = lanewise(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert max(map(len, outcome.out.splitlines())) <= 100
    assert "…" not in outcome.out


@pytest.mark.parametrize(
    "line",
    [
        ("explain", "gravity", "--layout", ""),
        ("explain", "gravity", "--precision="),
        ("explain", "gravity", "--arch", "", "--json"),
        ("tune", "gravity", "--layout", ""),
        ("lbm", "run", "--layout", ""),
        ("boids", "run", "--movie", ""),
        ("gravity", "run", "--out="),
        ("waves", "search", "--out", ""),
        ("ladder", "tutorial", "--quick", "--plot", ""),
    ],
)
def test_empty_values_are_refused(lanewise: Command, line: tuple[str, ...]) -> None:
    """What a script gives whose variable is not set; an empty name stood for the default, and an empty path for this folder."""
    option = next(x for x in line if x.endswith("=") or (x.startswith("--") and line[line.index(x) + 1 :][:1] == ("",)))
    message = f"{option.rstrip('=')}: found an empty text; give a value, or leave the option out"
    assert_refused(lanewise(*line), message)


@pytest.mark.parametrize(
    ("words", "files"),
    [
        (("gravity", "run", "--bodies", 20, "--steps", 2), {"--out": "a.h5", "--plot": "a.png", "--movie": "a.gif"}),
        (
            ("lbm", "run", "karman", "--size", 4, "--steps", 4),
            {"--out": "a.h5", "--vti": "a.vti", "--plot": "a.png", "--movie": "a.gif", "--forces": "a.csv"},
        ),
        (
            ("boids", "run", "--agents", 20, "--steps", 2),
            {"--out": "a.h5", "--final": "a.csv", "--plot": "a.png", "--movie": "a.gif"},
        ),
    ],
)
def test_every_file_that_a_run_writes_is_named(
    lanewise: Command, words: tuple[object, ...], files: dict[str, str]
) -> None:
    said = lanewise(*words, *(w for pair in files.items() for w in pair)).out.splitlines()
    assert [line for line in said if line.startswith("written to")] == [f"written to {f}" for f in files.values()]
    assert all(Path(f).exists() for f in files.values())
    resumed = lanewise(words[0], "run", "--resume", "a.h5", "--steps", 1).out.splitlines()
    assert resumed[-1] == "written to a.h5"
