"""`lanewise boids run --profile`: the stages of a flock, as a table, as JSON and as a trace."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command

GRID = ("boids", "run", "--agents", 64, "--world", 30, "--steps", 20, "--search", "static-grid")
PAIRS = ("boids", "run", "--agents", 40, "--world", 20, "--steps", 20, "--search", "all-pairs")
STAGES = {"setup", "search", "update", "check", "observe", "transfer", "rest"}


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_the_stages_of_a_step(lanewise: Command, device: str) -> None:
    outcome = lanewise(*GRID, "--device", device, "--profile", "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.last_json["profile"]
    assert found["stages"].keys() == STAGES | {"build"}
    assert sum(row["share"] for row in found["stages"].values()) == pytest.approx(1)
    assert found["steps"]["count"] == 20
    assert found["stages"]["build"]["parts"].keys() >= {"structure"}
    assert found["stages"]["update"]["calls"] == 20
    assert "where the time goes" in outcome.err
    assert "where the time goes" not in outcome.out


def test_files_and_obstacles_are_stages(lanewise: Command) -> None:
    files = (
        "--out",
        "a.h5",
        "--final",
        "a.csv",
        "--plot",
        "a.png",
        "--movie",
        "a.gif",
        "--size",
        "64x64",
        "--every",
        5,
    )
    scene = ("--obstacle", "sphere:3,0,0,2", "--obstacle", "plane:0,-9,0,0,1,0,outside")
    found = lanewise(*PAIRS, *files, *scene, "--profile", "--json").last_json["profile"]["stages"]
    assert found.keys() == STAGES | {"avoid", "output", "checkpoint"}
    assert found["output"]["parts"].keys() == {"movie", "picture", "final state"}
    assert found["output"]["parts"]["movie"]["calls"] == 5
    assert found["avoid"]["parts"].keys() == {"clear", "sphere", "rectangle"}
    assert found["transfer"]["bytes"] >= 5 * 40 * 52


def test_a_trace_is_written_when_it_is_named(lanewise: Command) -> None:
    assert lanewise(*PAIRS, "--profile", "t.json", "--out", "a.h5").code == 0
    found = json.loads(Path("t.json").read_text(encoding="utf-8"))["traceEvents"]
    assert {e["cat"] for e in found} >= {"setup", "search", "update", "checkpoint"}
    again = lanewise(*PAIRS, "--profile=t.json")
    assert (again.code, again.err) == (2, "error: t.json: the file exists already; give --overwrite to replace it\n")
    resumed = lanewise("boids", "run", "--resume", "a.h5", "--steps", 8, "--profile", "--json").last_json["profile"]
    assert resumed["steps"]["count"] == 8
    assert "read the checkpoint" in resumed["stages"]["setup"]["parts"]


def test_a_profile_changes_no_bit(lanewise: Command) -> None:
    for name, options in (("a.csv", ()), ("b.csv", ("--profile",))):
        assert lanewise(*PAIRS, "--final", name, *options).code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
