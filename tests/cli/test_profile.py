"""`--profile`: where the time of a run goes, as a table, as JSON and as a trace."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lanewise.sims.common.profile_report import split_trace
from tests.cli.command import Command, Outcome

GRAVITY = ("gravity", "run", "--bodies", 32, "--steps", 40, "--softening", 0.1)
CAVITY = ("lbm", "run", "cavity", "--size", 9, "--steps", 40)
STAGES = {
    GRAVITY: {"setup", "transfer", "forces", "integrate", "check", "diagnostics", "rest"},
    CAVITY: {"setup", "transfer", "collide-stream", "observe", "rest"},
}
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


def events(path: str) -> list[dict[str, Any]]:
    return json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"]


def table(text: str) -> dict[str, list[str]]:
    """Rows by their first cell."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    return {row[0]: row[1:] for row in rows}


def assert_refused(outcome: Outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("command", [GRAVITY, CAVITY], ids=["gravity", "lbm"])
def test_the_table_is_on_standard_error_and_the_numbers_are_in_the_json(
    lanewise: Command, command: tuple[object, ...], device: str
) -> None:
    outcome = lanewise(*command, "--device", device, "--profile", "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.last_json["profile"]
    assert found["stages"].keys() == STAGES[command]
    assert sum(row["share"] for row in found["stages"].values()) == pytest.approx(1)
    assert sum(row["seconds"] for row in found["stages"].values()) == pytest.approx(found["seconds"])
    assert found["steps"]["count"] == 40
    assert 1 <= found["steps"]["sampled"] <= 40
    rows = table(outcome.err)
    assert STAGES[command] <= rows.keys()
    assert rows["all"][-1] == "100.0 %"
    assert "where the time goes" not in outcome.out


@pytest.mark.parametrize("command", [GRAVITY, CAVITY], ids=["gravity", "lbm"])
@pytest.mark.parametrize("written", [("--profile", "t.json"), ("--profile=t.json",)], ids=["two words", "one word"])
def test_a_trace_is_written_when_it_is_named(
    lanewise: Command, command: tuple[object, ...], written: tuple[str, ...]
) -> None:
    outcome = lanewise(*command, *written, "--quiet")
    assert outcome.code == 0, outcome.err
    assert outcome.err.endswith("trace written to t.json; https://ui.perfetto.dev opens it\n")
    found = events("t.json")
    assert all({"name", "ph", "ts", "dur", "pid", "tid"} <= e.keys() for e in found)
    assert {e["cat"] for e in found} >= STAGES[command] - {"transfer"}
    assert_refused(
        lanewise(*command, *written), "t.json: the file exists already; give --overwrite to replace it"
    )  # before anything is computed
    assert lanewise(*command, *written, "--overwrite").code == 0


def test_output_is_a_stage_of_its_own(lanewise: Command) -> None:
    files = ("--out", "run.h5", "--snapshot-every", 20, "--plot", "run.png")
    found = lanewise(*GRAVITY, *files, "--profile", "--json").last_json["profile"]["stages"]
    assert found["output"]["parts"].keys() == {"snapshot", "picture"}
    assert (found["output"]["parts"]["snapshot"]["calls"], found["checkpoint"]["calls"]) == (2, 2)
    assert found["transfer"]["parts"]["bodies to the host"]["calls"] >= 4
    assert found["transfer"]["bytes"] >= 5 * 32 * 28
    flow = lanewise(*CAVITY, "--out", "flow.h5", "--vti", "flow.vti", "--profile", "--json").last_json["profile"][
        "stages"
    ]
    assert flow["checkpoint"]["calls"] == 1
    assert flow["output"]["parts"].keys() == {"fields for ParaView"}
    assert {"populations to the host", "fields to the host"} <= flow["transfer"]["parts"].keys()


@pytest.mark.parametrize("command", [GRAVITY, CAVITY], ids=["gravity", "lbm"])
def test_a_resumed_run_has_a_profile(lanewise: Command, command: tuple[object, ...]) -> None:
    assert lanewise(*command, "--out", "run.h5").code == 0
    outcome = lanewise(*command[:2], "--resume", "run.h5", "--steps", 8, "--profile", "--json")
    found = outcome.last_json["profile"]
    assert found["steps"]["count"] == 8
    assert "read the checkpoint" in found["stages"]["setup"]["parts"]


def test_without_the_option_nothing_is_said(lanewise: Command) -> None:
    outcome = lanewise(*GRAVITY, "--json")
    assert "profile" not in outcome.last_json
    assert outcome.err == ""


def test_traces_that_are_in_the_way_are_refused(lanewise: Command) -> None:
    assert_refused(lanewise(*GRAVITY, "--profile=t.txt"), "--profile t.txt: wanted a name that ends in .json")
    assert_refused(
        lanewise(*GRAVITY, "--profile", "run.json", "--out", "run.json"),
        "--out run.json: wanted a name that ends in .h5 or .hdf5",
    )
    outcome = lanewise(*CAVITY, "--profile", "no/t.json")
    assert_refused(outcome, "no/t.json: the folder no does not exist; create it first")


def test_what_follows_the_flag_is_another_argument_unless_it_is_a_trace(lanewise: Command) -> None:
    outcome = lanewise("lbm", "run", "--profile", "cavity", "--size", 9, "--steps", 4)
    assert outcome.code == 0, outcome.err
    assert "collide-stream" in table(outcome.err)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("--profile", "--profile"),
        ("--profile t.json --json", "--profile --profile-trace=t.json --json"),
        ("--profile=a/b.json cavity", "--profile --profile-trace=a/b.json cavity"),
        ("--profile --json t.json", "--profile --json t.json"),
        ("--out t.json --profile", "--out t.json --profile"),
        ("-- --profile t.json", "-- --profile t.json"),
    ],
)
def test_the_option_is_split(given: str, wanted: str) -> None:
    assert split_trace(given.split()) == wanted.split()


def test_the_help_shows_one_option(lanewise: Command) -> None:
    text = re.sub(r"[^\w.-]+", " ", lanewise("lbm", "run", "--help").out)
    assert "--profile FILE.json also writes a trace for Perfetto" in text
    assert "profile-trace" not in text
