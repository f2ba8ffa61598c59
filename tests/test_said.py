"""What documents count, list and measure is what is there: numbers, tables, examples, console blocks, figures of
results.
"""

from __future__ import annotations

import doctest
import inspect
import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from typer.testing import CliRunner

import lanewise as lw
from docs.generator import pictures
from docs.generator.scenes import SCENES
from lanewise.compiler.optimisations import OPTIMISATIONS, Optimisation
from lanewise.layouts.named import LAYOUTS
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.planning.plan import NEUTRAL
from lanewise.sims import PRODUCTS, lbm
from lanewise.sims.gravity import INTEGRATORS
from tests.markdown import blocks

ROOT = Path(__file__).parent.parent
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", *DOCS]
README = (ROOT / "README.md").read_text(encoding="utf-8")


# ---------------------------------------------------------------- counts and lists


def test_the_number_of_optimisations_is_that_of_the_catalogue() -> None:
    found = [
        (path.name, int(n))
        for path in PAGES
        for n in re.findall(r"\b(\d+) optimisations", path.read_text(encoding="utf-8"))
    ]
    assert {name for name, _ in found} >= {"README.md", "interface.md", "passes.md"}
    assert {n for _, n in found} == {len(OPTIMISATIONS)}
    text = (ROOT / "docs/passes.md").read_text(encoding="utf-8")
    assert f"{len(fields(lw.Plan))} are fields of `lw.Plan`" in text


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
PATTERNS = [
    t for t in (getattr(lw, n) for n in dir(lw)) if inspect.isclass(t) and issubclass(t, AbstractKernel | LatticeKernel)
]
COUNTED: dict[str, tuple[str, int]] = {
    r"(\w+) kinds of kernel\b": ("README.md", len(PATTERNS)),
    r"(\w+) cases, collisions from\b": ("README.md", len(lbm.CASES)),
    r"(\w+) ready-made programs\b": ("README.md", len(PRODUCTS)),
    r"## (\w+) numbers\b": (
        "README.md",
        README.partition("<!-- figures: begin")[2].partition("<!-- figures: end")[0].count("\n| ["),
    ),
    r"[Tt]he (\w+) layouts\b": ("docs/layouts.md", len(LAYOUTS)),
    r"(\w+) integrators\b": ("CHANGELOG.md", len(INTEGRATORS)),
    r"Flow: (\w+) cases\b": ("CHANGELOG.md", len(lbm.CASES)),
}
"""What documents count in words: where, and how many there are."""


@pytest.mark.parametrize("words", COUNTED)
def test_counts_in_words_are_those_of_the_code(words: str) -> None:
    page, there = COUNTED[words]
    found = re.findall(words, (ROOT / page).read_text(encoding="utf-8"))
    assert {n.lower() for n in found} == {NUMBERS[there]}


def _tried(o: Optimisation, *names: str) -> str:
    values = dict.fromkeys(v for n in names for v in getattr(o, n) if v != o.neutral)
    return ", ".join(f"`{v!r}`".replace("'", '"') for v in values)


def field_table() -> str:
    rows = [
        "| field | optimisation | elsewhere called | neutral | tried on a GPU | tried on a CPU |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for o in OPTIMISATIONS:
        if o.field != "layout":
            gpu = _tried(o, "cuda", "elementwise", "items", "sites", "points")
            cpu = _tried(o, "cpu", "elementwise_cpu", "items_cpu", "points_cpu", "in_order")
            neutral = repr(getattr(NEUTRAL, o.field)).replace("'", '"')
            other = "" if o.literature == o.name else o.literature
            rows.append(f"| `{o.field}` | {o.name} | {other} | `{neutral}` | {gpu} | {cpu} |")
    return "\n".join(rows)


def test_every_field_of_a_plan_has_a_row(request: pytest.FixtureRequest) -> None:
    """`make golden` writes the table."""
    path = ROOT / "docs/passes.md"
    begin, end = "<!-- generated: begin -->\n", "<!-- generated: end -->"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    after = rest.partition(end)[2]
    wanted = f"{before}{begin}\n{field_table()}\n\n{end}{after}"
    if request.config.getoption("--update-golden"):
        path.write_text(wanted, encoding="utf-8")
        text = wanted
    assert text == wanted
    assert field_table().count("\n") == len(fields(lw.Plan)) + 1


def test_every_example_is_in_the_index() -> None:
    index = (ROOT / "docs/reference/examples.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(\.\./\.\./examples/(\w+\.py)\)", index)
    assert sorted(named) == sorted(p.name for p in (ROOT / "examples").glob("*.py"))


def test_every_example_and_every_scene_has_a_small_picture() -> None:
    """`python -m docs.generator.pictures` draws them; the page shows each once."""
    page = (ROOT / "docs/reference/examples.md").read_text(encoding="utf-8")
    shown = re.findall(r"\]\(\.\./pictures/((?:examples|products)/\w+\.png)\)", page)
    wanted = {f"examples/{n}.png" for n in pictures.names()} | {f"products/{n}.png" for n in SCENES}
    assert sorted(shown) == sorted(wanted)
    there = {p.relative_to(pictures.PICTURES).as_posix(): p for p in pictures.PICTURES.glob("*/*.png")}
    assert set(there) == wanted
    for path in there.values():
        assert path.stat().st_size <= pictures.LARGEST, path.name
        with Image.open(path) as picture:
            assert picture.size == pictures.SIZE, path.name
    assert set(pictures.ARGUMENTS) | set(pictures.drawings.DRAWINGS) <= set(pictures.names())


def test_every_ladder_has_a_page_that_the_table_links() -> None:
    from lanewise.ladders import LADDERS

    text = (ROOT / "docs/ladders.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[`([\w-]+)`\]\(ladder-\1\.md\) \|", text, re.MULTILINE) == list(LADDERS)
    pages = {p.stem.removeprefix("ladder-"): p for p in (ROOT / "docs").glob("ladder-*.md")}
    assert set(pages) == set(LADDERS)
    for name, path in pages.items():
        assert path.read_text(encoding="utf-8").startswith(f"# The `{name}` ladder: "), name


def test_notes_of_design_have_numbers_of_their_own() -> None:
    numbers = [p.name[:4] for p in (ROOT / "design").glob("[0-9]*.md")]
    assert len(numbers) == len(set(numbers))


def test_every_public_name_has_a_docstring_of_its_own() -> None:
    said: dict[str, list[str]] = defaultdict(list)
    for name in lw.__all__:
        thing: Any = getattr(lw, name)
        if inspect.ismodule(thing) or isinstance(thing, (float, str)):
            assert f"`lanewise.{name}` is " in inspect.cleandoc(lw.__doc__ or ""), name  # it has no docstring
            continue
        text = inspect.getdoc(thing)
        assert text, name
        said[text].append(name)
    assert [names for names in said.values() if len(names) > 1] == []


# ---------------------------------------------------------------- what commands print


def consoles() -> Iterator[tuple[str, str, str]]:
    """Documents, the command of `...Of `command`` above a console block, and the block."""
    for path in DOCS:
        text = path.read_text(encoding="utf-8")
        for block in blocks(text):
            if block.language == "console":
                above = "\n".join(text.splitlines()[: block.line - 1])[-600:]
                command = re.findall(r"`(lanewise explain [^`]+)`", above)
                if command:
                    yield path.name, command[-1], block.text


@pytest.mark.slow
@pytest.mark.parametrize(("document", "command", "shown"), list(consoles()))
def test_explanations_print_what_is_shown(document: str, command: str, shown: str) -> None:
    """Nothing of an explanation for a GPU depends on the machine; a line `...` stands for any lines."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from lanewise.cli.main import app

    arguments = shlex.split(command)[1:]
    if "--arch" not in arguments:
        arguments += ["--arch", "sm_90"]
    printed = CliRunner().invoke(app, arguments, env={"COLUMNS": "120"}).stdout
    wanted = "\n".join(line.rstrip() for line in shown.splitlines()) + "\n"
    found = "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"
    assert doctest.OutputChecker().check_output(wanted, found, doctest.ELLIPSIS), f"{document}: {command}\n{found}"


def test_there_is_a_block_of_an_explanation() -> None:
    assert [c for _, c, _ in consoles()]


# ---------------------------------------------------------------- figures of results

LINK = re.compile(r"\]\(((?:\.\./)?bench/results/[\w/.]+\.(?:md|json))\)")
FIGURE = re.compile(
    r"(?<![\w.,])(\d[\d,]*\.\d+(?:e\d+)?|\d{1,3}(?:,\d{3})+)(?= (?:ms|us|µs|MLUPS|pairs/s|TFLOP/s|TB/s)\b)"
)


def figures() -> Iterator[tuple[str, str, Path]]:
    """Figures with a unit of speed or time that share a line of a table, or a sentence, with a link to a result."""
    for path in PAGES:
        for line in path.read_text(encoding="utf-8").splitlines():
            links = LINK.findall(line)
            if len(links) == 1 and line.startswith("| ["):
                for figure in FIGURE.findall(line):
                    yield f"{path.name}: {line[:60]}", figure, (path.parent / links[0]).resolve()


def _numbers(text: str) -> list[float]:
    return [float(x.replace(",", "")) for x in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", text)]


@pytest.mark.parametrize(("where", "figure", "result"), list(figures()))
def test_figures_of_documents_are_those_of_the_results_that_they_link(where: str, figure: str, result: Path) -> None:
    wanted = float(figure.replace(",", ""))
    digits = len(re.sub(r"e.*|[,.]", "", figure).lstrip("0"))
    known = _numbers(result.read_text(encoding="utf-8"))
    known += [n * scale for n in known for scale in (1e3, 1e-3)]  # ms of us, and so on
    assert any(float(f"{n:.{digits - 1}e}") == float(f"{wanted:.{digits - 1}e}") for n in known), where


SENTENCES = {
    "searches.md": [("1.295 ms", "gpu_boids.json", 1.295), ("0.2241 ms", "gpu_boids.json", 0.2241)],
    "layouts.md": [("3.88", "ladders/memory.json", 3.88), ("0.628", "ladders/memory.json", 0.628), ("3.35", "ladders/memory.json", 3.35)],
    "profile.md": [("0.13 to 0.72 %", "gpu_boids.json", 0.723)],
}  # fmt: skip


@pytest.mark.parametrize("document", SENTENCES)
def test_sentences_agree_with_their_results(document: str) -> None:
    """Figures in sentences that have been wrong before."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    for said, file, value in SENTENCES[document]:
        assert said in text
        numbers = _numbers(json.dumps(json.loads((ROOT / "bench/results" / file).read_text())))
        scaled = numbers + [n * 1e-12 for n in numbers]
        assert any(abs(n - value) <= 0.002 * value for n in scaled), (said, file)


def test_every_result_is_in_the_index_of_results() -> None:
    index = (ROOT / "bench/results/README.md").read_text(encoding="utf-8")
    names = {p.stem for p in (ROOT / "bench/results").glob("*") if p.is_file() and p.stem != "README"}
    missing = {n for n in names if n not in index and not n.startswith("gpu_reductions_")}
    assert missing == set()


def test_the_index_of_results_links_to_every_page_of_results() -> None:
    folder = ROOT / "bench/results"
    links = set(re.findall(r"\]\(([\w.]+)\)", (folder / "README.md").read_text(encoding="utf-8")))
    assert {p.name for p in folder.glob("*.md") if p.stem != "README"} - links == set()


def test_every_row_of_results_names_a_state_of_the_source() -> None:
    """A commit in the table or, where it says so, in the file itself; the summary is made of the others."""
    folder = ROOT / "bench/results"
    rows = re.findall(
        r"^\| (\[?`.+) \| (.+) \| (.+) \|$", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 50
    commit = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")
    for files, _, state in rows:
        if "`summary`" not in files and not commit.search(state):
            assert "named in the file" in state, files
            paths = [p for n in re.findall(r"`([\w/.]+)`", files) for p in folder.glob(n if "." in n else f"{n}.*")]
            assert any(commit.search(p.read_text(encoding="utf-8")) for p in paths), files
    of_ladders = set(re.findall(r"\w+", " ".join(files for files, _, _ in rows if files.startswith("`ladders/"))))
    assert {p.stem for p in (folder / "ladders").glob("*.json")} <= of_ladders


# ---------------------------------------------------------------- installation


def test_whoever_begins_with_a_command_says_how_to_have_it() -> None:
    """Pages with shell blocks of `lanewise` link to the installation before the first of them."""
    missing = [
        path.name
        for path in DOCS
        if "```sh\nlanewise " in (text := path.read_text(encoding="utf-8"))
        and "](install.md" not in text[: text.index("```sh\nlanewise ")]
        and path.name != "install.md"
    ]
    assert missing == []


def test_what_pip_installs_can_be_installed() -> None:
    """No index has lanewise: messages ask `lanewise.support.installation`, and documents name the checkout."""
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "installation.py":
            assert "pip install" not in path.read_text(encoding="utf-8"), path
    for path in PAGES:
        assert not re.findall(r"pip install '?lanewise", path.read_text(encoding="utf-8")), path.name
