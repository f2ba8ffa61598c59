"""Every page with commands can be followed from top to bottom in one empty folder; JSON that is shown has the keys that are printed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from docs.generator.scenes import SCENES
from lanewise.cli.commands import app
from lanewise.runtime.devices import missing_for_cuda
from tests.following import NOT_HERE, PATIENCE, ROOT, follow, is_run, lacking, short, steps_of
from tests.markdown import Block, blocks, differences, run_blocks

PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for p in (ROOT / "docs").rglob("*.md")
    if "reference" not in p.parts and any(s.command for s in steps_of(p.read_text(encoding="utf-8")))
)


def test_pages_with_commands_are_found() -> None:
    assert {
        "docs/gravity.md",
        "docs/lbm.md",
        "docs/flocks.md",
        "docs/waves.md",
        "docs/units.md",
        "docs/view.md",
    } <= set(PAGES)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_can_be_followed_in_one_folder(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert follow(ROOT / page, tmp_path) == []


FILE = re.compile(r"[\w-]+\.(?:png|gif|mp4|h5|csv|npz|json|vti|stl|lwv)\b|(?<=--out )\w+(?= |$)")
"""Files that commands write or read, and folders that they write."""


def test_pages_can_be_followed_in_one_folder() -> None:
    """No command writes over the file of another page: each file is named on one page only."""
    named: dict[str, set[str]] = defaultdict(set)
    for page in ("README.md", *PAGES):
        for step in steps_of((ROOT / page).read_text(encoding="utf-8")):
            for name in ["run.h5", "run.png"] if step.command.startswith("make run") else FILE.findall(step.command):
                named[name].add(page)
    for example in (ROOT / "examples").glob("*.py"):  # what it writes without arguments
        for name in re.findall(r'else "([\w-]+\.\w+)"', example.read_text(encoding="utf-8")):
            named[name].add(example.name)
    for scene in SCENES.values():
        for name in FILE.findall(f"{scene.before} {scene.command}"):
            named[name].add("docs/reference/examples.md")
    for name in FILE.findall(app.info.epilog or ""):
        named[name].add("lanewise --help")
    assert {"vorticity.png", "hough", "map.csv", "first.h5"} <= set(named)
    assert {"vortex_street.png", "cluster.npz", "body.png", "run.png", "data"} <= set(named)
    both_of_an_installation = {"README.md", "docs/install.md"}  # the same `make run`, which is run once
    assert {n: pages for n, pages in named.items() if len(pages) > 1 and pages != both_of_an_installation} == {}


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("lanewise lbm run karman --re 150", "lanewise lbm run karman --re 150 --steps 40 --size 16"),
        ("lanewise gravity run --bodies 100000 --steps 10", "lanewise gravity run --bodies 400 --steps 10"),
        ("lanewise explain gravity --device cuda", "lanewise explain gravity --device cuda"),
        ("lanewise waves run --sfts 'data/*.sft'", "lanewise waves run --sfts 'data/*.sft'"),
    ],
)
def test_commands_are_made_short(command: str, wanted: str) -> None:
    assert short(command) == wanted


def test_what_is_not_run_has_a_reason() -> None:
    assert not is_run("make docs")
    assert is_run("lanewise info")
    commands = [s.command for p in (ROOT / "docs").rglob("*.md") for s in steps_of(p.read_text(encoding="utf-8"))]
    assert [b for b in NOT_HERE if not any(c.split(" ")[0] == b.split(" ")[0] for c in commands) and b != "make"] == []


CONTINUED = ("lalpulsar",)
"""Pages whose blocks for other packages continue the program above them: a test of their own runs these."""
ALIKE = ("numba", "flamegpu", "hoomd")
"""Pages for users of another library whose two programs print the same."""
ON_GPUS = ("import cupy", "import pyflamegpu")


def of(language: str) -> list[tuple[str, Block]]:
    pages = sorted(p for p in (ROOT / "docs").rglob("*.md") if "reference" not in p.parts)
    return [(p.name, b) for p in pages for b in blocks(p.read_text(encoding="utf-8")) if b.language == language]


@pytest.mark.parametrize(
    ("page", "block"),
    [pytest.param(p, b, marks=pytest.mark.cuda if "import cupy" in b.text else ()) for p, b in of("py")],
    ids=lambda x: x if isinstance(x, str) else f"line {x.line}",
)
def test_python_for_other_packages_is_python_and_runs_where_they_are(page: str, block: Block, tmp_path: Path) -> None:
    compile(block.text, page, "exec", dont_inherit=True)
    whole = block.text.lstrip().startswith(("import", "from"))
    if whole and "lw." not in block.text and page.removesuffix(".md") not in CONTINUED:
        if missing := lacking(block):
            pytest.skip(f"{', '.join(missing)} not installed")
        if any(name in block.text for name in ON_GPUS) and (absent := missing_for_cuda()):
            pytest.skip(absent[0])
        program = tmp_path / page.replace(".md", "_page.py")  # a file: some libraries read a function's source
        program.write_text(block.text)
        done = subprocess.run(
            [sys.executable, program], check=True, cwd=tmp_path, timeout=PATIENCE, stdout=subprocess.PIPE, text=True
        )
        if page.removesuffix(".md") in ALIKE:
            text = (ROOT / "docs/coming_from" / page).read_text(encoding="utf-8")
            (shown,) = [b.output.splitlines() for b in blocks(text) if b.output is not None]
            assert [x for x in done.stdout.splitlines() if x in shown] == shown  # libraries also print notices


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "packages"),
    [
        ("arrays", ["pandas"]),
        ("gradients", ["torch", "jax"]),
        ("coming_from/lalpulsar", ["lalpulsar", "solar_system_ephemerides"]),
    ],
)
def test_python_that_continues_that_of_the_page_runs_where_its_packages_are(
    page: str, packages: list[str], tmp_path: Path
) -> None:
    for package in packages:
        pytest.importorskip(package)
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    ran = list(run_blocks(text.replace("```py\n", "```python\n"), tmp_path / "physics.py"))
    assert len(ran) == len([b for b in blocks(text) if b.language in ("python", "py")])
    wrong = [differences(block, printed) for block, printed in ran if block.output is not None]
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.slow
def test_json_that_is_shown_has_the_keys_that_are_printed() -> None:
    ((page, block),) = of("json")
    assert page == "explain.md"
    done = subprocess.run(
        [sys.executable, "-m", "lanewise", "explain", "gravity", "--device", "cuda", "--bodies", "16384", "--json"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    printed, shown = json.loads(done.stdout), json.loads(block.text)
    assert sorted(differing(shown, printed, "")) == []


def differing(shown: Any, printed: Any, place: str) -> list[str]:
    """Keys that are not printed, and values of another type."""
    if isinstance(shown, dict) and isinstance(printed, dict):
        return [
            x
            for k, v in shown.items()
            for x in (differing(v, printed[k], f"{place}/{k}") if k in printed else [f"{place}/{k}"])
        ]
    if isinstance(shown, list) and isinstance(printed, list):
        return [] if not shown else min((differing(shown[0], p, place) for p in printed), key=len, default=[place])
    alike = (
        None in (shown, printed) or isinstance(shown, float) == isinstance(printed, float) or isinstance(printed, int)
    )
    return [] if alike else [place]
