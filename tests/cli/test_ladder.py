"""`lanewise ladder`: JSON and tables of a quick climb, the picture, and every mistake of a user."""

from __future__ import annotations

import re
import shlex
import struct
from pathlib import Path

import pytest
import typer

from lanewise.cli.main import app
from lanewise.ladders import boids
from lanewise.ladders.boids_versions import Version
from lanewise.ladders.layouts import combinations
from lanewise.ladders.tutorial import NAMES, STEPS
from lanewise.runtime import devices
from tests.cli.command import Command
from tests.markdown import commands

KEYS = {"name", "bodies", "seconds", "speedup", "predicted", "paper", "relative_error", "skipped"}


@pytest.mark.slow
def test_json_of_the_tutorial(lanewise: Command) -> None:
    found = lanewise("ladder", "tutorial", "--quick", "--bodies", "600,300", "--json", "--plot", "bars.png")
    assert (found.code, found.err) == (0, "")
    assert len(found.out.splitlines()) == 1
    facts = found.last_json
    assert facts["ladder"] == "tutorial"
    assert facts["machine"].keys() >= {"name", "device", "cpu", "threads", "lanewise", "numpy", "date"}
    assert [(r["bodies"], r["name"]) for r in facts["rungs"]] == [(n, name) for n in (600, 300) for name in NAMES]
    for rung in facts["rungs"]:
        assert rung.keys() >= KEYS
        assert (rung["seconds"] is None) == (rung["skipped"] is not None)
    timed = [r for r in facts["rungs"] if r["seconds"] is not None]
    assert len(timed) >= 12
    assert all(0 < r["relative_error"] < 1e-5 for r in timed)
    png = Path("bars.png").read_bytes()
    width, height = struct.unpack(">II", png[16:24])
    assert width > 1500
    assert height > 1000


def test_table_of_the_layouts(lanewise: Command) -> None:
    found = lanewise("ladder", "layouts", "--quick", "--bodies", "300", "--seed", "3")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[0].strip() == "memory layouts of gravity: 300 bodies"
    for heading in (
        "rung",
        "time",
        "factor",
        "model",
        "paper",
        "rel. error",
        "over AoS",
        "over serial",
        "pairs/s",
        "GFLOP/s",
    ):
        assert heading in lines[2], heading
    assert "of bound" not in found.out  # there is none on a CPU
    for c in combinations(True):
        assert any(c.name in line for line in lines)
    assert any(line.startswith("300 bodies: fastest is ") for line in lines)
    assert lines[-1].startswith("measured on ")


MISTAKES = {
    "ladder": ("stairs", "unknown ladder 'stairs'; wanted one of tutorial, layouts, memory, lbm, boids, waves, compiler, tree, gravity-mesh"),
    "none": ("tutorial --bodies 0", "--bodies 0: 0 bodies requested; wanted at least 1"),
    "negative": ("layouts --bodies 10,-5", "--bodies 10,-5: -5 bodies requested; wanted at least 1"),
    "word": (
        "tutorial --bodies many",
        "--bodies many: 'many' is not an integer; wanted one, or several with commas",
    ),
    "fraction": ("tutorial --bodies 1.5", "--bodies 1.5: '1.5' is not an integer; wanted one, or several with commas"),
    "empty": ("tutorial --bodies 5,", "--bodies 5,: '' is not an integer; wanted one, or several with commas"),
    "many": (
        "tutorial --bodies 3000000000",
        "--bodies 3000000000: 3000000000 bodies requested; wanted at most 2,147,418,112",
    ),
    "device": (
        "tutorial --device tpu",
        "unknown device 'tpu'; wanted 'cpu', 'cuda', 'cuda:1' (a number for each GPU) or 'python' (the interpreter)",
    ),
    "interpreter": (
        "tutorial --device python",
        "the interpreter is no device to measure: wanted cpu or cuda",
    ),
    "agents": ("lbm --agents 64", "--agents 64: ladder lbm counts sites; wanted --bodies"),
    "agents twice": (
        "boids --agents 64 --bodies 32",
        "--agents 64 and --bodies 32 are the same; wanted one of them",
    ),
    "no agents": ("boids --agents 0", "--agents 0: 0 agents requested; wanted at least 1"),
    "some agents": (
        "boids --agents few",
        "--agents few: 'few' is not an integer; wanted one, or several with commas",
    ),
    "world": ("tutorial --world 50", "--world 50: ladder tutorial has no worlds; wanted ladder boids"),
    "worlds": (
        "boids --world 50,-1",
        "--world 50,-1: '-1' is no radius; wanted a positive number, or several with commas",
    ),
    "wide": ("boids --world inf", "--world inf: 'inf' is no radius; wanted a positive number, or several with commas"),
    "parts": ("lbm --only mm", "--only mm: ladder lbm is climbed as a whole; wanted ladder compiler"),
    "part": (
        "compiler --only mm,lu",
        "--only mm,lu: 'lu' is no part of compiler; wanted tmv, mm, mv, vv, rd, strsm, conv, tp, demosaic, imregionmax, batched, stencil, softmax, histogram",
    ),
    "few elements": ("compiler --bodies 900", "900 elements: wanted matrices of 32 x 32 = 1,024 or more"),
    "seed": ("tutorial --seed -1", f"the seed is -1; wanted zero to {2**63 - 1}"),
    "jpeg": ("tutorial --plot bars.jpg", "--plot bars.jpg: pictures are PNG; wanted a name that ends in .png"),
    "folder": ("tutorial --plot nowhere/bars.png", "nowhere/bars.png: the folder nowhere does not exist; create it first"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(lanewise: Command, name: str) -> None:
    line, message = MISTAKES[name]
    found = lanewise("ladder", *line.split())
    assert (found.code, found.out, found.err) == (2, "", f"error: {message}\n")


def test_without_a_gpu(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "missing_for_cuda", lambda: ("no GPU was found",))
    found = lanewise("ladder", "tutorial", "--device", "cuda")
    assert (found.code, found.out) == (2, "")
    assert found.err == "error: device 'cuda' cannot be used:\n  - no GPU was found\n"


def test_flocks_of_the_command_line(lanewise: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    first = next(boids.versions(5.0, "cpu")).name
    every = boids.versions

    def few(world: float, device: str) -> list[Version]:
        return [v for v in every(world, device) if v.name == first]

    monkeypatch.setattr(boids, "versions", few)
    found = lanewise(
        "ladder", "boids", "--quick", "--agents", "9,5", "--world", "5,6", "--json", "--plot", "flocks.png"
    )
    assert (found.code, found.err) == (0, "")
    rungs = found.last_json["rungs"]
    assert list(dict.fromkeys((r["bodies"], r["world"]) for r in rungs)) == [(9, 5), (9, 6), (5, 5), (5, 6)]
    assert all(r.keys() >= KEYS for r in rungs)
    refused = [r["skipped"] for r in rungs if r["bodies"] == 5 and r["name"] == "W=5, all pairs"]
    assert refused == ["k is 7; there are only 5 agents"]
    assert Path("flocks.png").read_bytes().startswith(b"\x89PNG")


def test_parts_of_a_ladder(lanewise: Command) -> None:
    found = lanewise(
        "ladder", "compiler", "--quick", "--bodies", "1024", "--only", "vv, tp", "--json", "--plot", "passes.png"
    )
    assert (found.code, found.err) == (0, "")
    assert {r["benchmark"] for r in found.last_json["rungs"]} == {"vv", "tp"}
    assert all(r.keys() >= KEYS for r in found.last_json["rungs"])
    assert Path("passes.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tutorial", "layouts", "memory", "boids", "compiler"])
def test_quick_climbs_as_they_are(lanewise: Command, name: str) -> None:
    found = lanewise("ladder", name, "--quick", "--json")
    assert (found.code, found.err) == (0, "")
    assert any(r["seconds"] is not None for r in found.last_json["rungs"])


DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTS = [DOCS / "ladders.md", *sorted(DOCS.glob("ladder-*.md"))]


def test_the_document_names_every_rung_with_the_figures_of_the_tutorial() -> None:
    text = (DOCS / "ladder-tutorial.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| .* \| ([\d./ ]*)\|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(NAMES)
    figures = {s.name: " / ".join(f"{x:g}" for x in s.paper) for s in STEPS}
    assert {name: shown.strip() for name, shown in rows} == {name: figures.get(name, "") for name in NAMES}


@pytest.mark.parametrize(
    "line", sorted({c for d in DOCUMENTS for c in commands(d.read_text(encoding="utf-8"), "lanewise")})
)
def test_command_lines_of_the_documents_parse(line: str) -> None:
    command = typer.main.get_command(app)
    _, name, *arguments = shlex.split(line)
    command.commands[name].make_context("lanewise", arguments)  # type: ignore[attr-defined]
