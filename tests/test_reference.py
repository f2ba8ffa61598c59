"""The reference is the code's: its pages are up to date, and nothing public is missing from it."""

from __future__ import annotations

import inspect
import re
import types
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import lanewise as lw
from docs.generator import __main__ as generator
from docs.generator import default_shapes, measurements, names, prose, settings
from lanewise.planning.plan import OPTIMISATIONS
from lanewise.sims import PRODUCTS

NAMES = sorted(p.name for p in generator.FOLDER.glob("*.md"))
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


@cache
def made() -> dict[str, str]:
    return generator.pages()


def test_the_pages_are_up_to_date() -> None:
    assert not list(generator.stale(made())), "run: make reference"


def test_every_public_name_is_on_one_page() -> None:
    found = [h for text in made().values() for h in HEADING.findall(text)]
    assert all(found.count(f"lw.{n}") == 1 for n in names.public())


@pytest.mark.parametrize("name", sorted(names.public()))
def test_a_public_name_has_a_docstring_of_its_own(name: str) -> None:
    thing = names.public()[name]
    if not isinstance(thing, float):
        own = inspect.getdoc(thing)
        assert own
        assert inspect.isclass(thing) or inspect.isroutine(thing) or own != inspect.getdoc(object)


def test_no_value_shows_the_docstring_of_its_type() -> None:
    """Dictionaries, tuples and unions of the products say what they hold, and members of Python's own types are left out."""
    shown = "\n".join(made().values()).splitlines()
    kinds = (dict, tuple, list, str, int, types.UnionType)
    own = [*kinds, *(m for k in kinds for n in dir(k) if not n.startswith("_") for m in [getattr(k, n)])]
    assert not ({(inspect.getdoc(o) or "").partition("\n")[0] for o in own} - {""}) & set(shown)
    assert "`taylor-green`: " in made()["lbm.md"]


def test_no_text_has_columns() -> None:
    """A docstring with names in a column would be one paragraph: in help() where it was wrapped, on a page always."""
    texts = (re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL) for text in made().values())
    lines = [line for text in texts for line in text.splitlines() if not line.startswith("|")]
    assert [line for line in lines if re.search(r"\S {3,}\S", line)] == []


def test_methods_have_their_types_and_defaults() -> None:
    assert "**`tune(*arguments: Any, seconds: float | None = None, plan: " in made()["kernels.md"]
    heads = re.findall(r"^\*\*`(\w+\(.*)`\*\*$", "\n".join(made().values()), re.MULTILINE)
    assert heads
    assert [h for h in heads if " at 0x" in h or "self" in h] == []


def test_calls_of_kernels_are_there() -> None:
    calls = re.findall(r"^\*\*`kernel\((.*)`\*\*$", made()["kernels.md"] + made()["lattices.md"], re.MULTILINE)
    assert len(calls) >= 6
    assert [c for c in calls if "plan: Plan | None = None" not in c] == []


def test_warnings_that_a_page_names_are_there() -> None:
    named = re.findall(r"\b\w+Warning\b", (generator.FOLDER.parent / "errors.md").read_text(encoding="utf-8"))
    there = "".join(re.findall(r"^## .*$", "\n".join(made().values()), re.MULTILINE))
    assert [n for n in named if n not in there and n != "UserWarning"] == []


def test_fields_that_tuning_leaves_alone_do_not_say_that_it_tries_them() -> None:
    for o in OPTIMISATIONS:
        section = made()["plan.md"].partition(f"\n## {o.field}\n")[2].partition("\n## ")[0]
        assert not (o.on_request and "tuning tries" in section), o.field


def test_every_field_of_a_plan_is_there() -> None:
    assert set(HEADING.findall(made()["plan.md"])) == {o.field for o in OPTIMISATIONS} | {default_shapes.TITLE}
    assert {o.field for o in OPTIMISATIONS} <= set(inspect.signature(lw.Plan).parameters)


def test_every_environment_variable_is_there() -> None:
    assert set(settings.VARIABLES) == settings.used()


@pytest.mark.parametrize("page", NAMES)
def test_links_lead_somewhere(page: str) -> None:
    folder = generator.FOLDER
    for target in re.findall(r"\]\(([^)]+)\)", made()[page]):
        file, _, place = target.partition("#")
        if file and not file.startswith("http"):
            assert (folder / file).resolve().exists() or file in made(), target
        if place and (not file or file in made()):
            assert place in _anchors(made()[file or page]), target


def _anchors(text: str) -> set[str]:
    made: dict[str, int] = {}
    found = set[str]()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        found.add(f"{anchor}-{made[anchor]}" if anchor in made else anchor)
        made[anchor] = made.get(anchor, 0) + 1
    return found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It hangs on the length.", ["hangs on"]),
        ("Nobody reads `integer` here.", ["Nobody"]),
        ("A plan\n```text\nbeside the point\n```\nof its own", ["of its own"]),
        ("The order depends on the length.", []),
        ("They were asked\n    for on a place of its\nown.", ["of its own", "asked for"]),
        ("`lanewise --steps\n9` goes on, and `another` is told.", ["goes on", "is told"]),
    ],
)
def test_words_that_read_as_translated_are_found(text: str, words: list[str]) -> None:
    assert [found for _, found, _ in prose.found(text)] == words


def test_no_page_has_them() -> None:
    assert {p.name for p in prose.pages() if list(prose.found(p.read_text(encoding="utf-8")))} == set()


def test_no_message_has_them() -> None:
    source = 'def f(n):\n    """Nobody reads this."""\n    raise ValueError(f"{n} whole numbers")\n'
    assert [words for _, words, _ in prose.found_in_strings(source)] == ["Nobody", "whole numbers"]
    assert [words for _, words, _ in prose.found_in_strings(source, messages=False)] == ["Nobody"]
    right = source.replace("numbers", "number of steps").replace("Nobody", "No user")
    assert not list(prose.found_in_strings(right))
    assert list(prose.found_in_strings(right.replace("number of", 'num" f"bers')))  # in two pieces
    broken = 'x = 1\n\ndef f():\n    """Is of a type of its\n    own, and is\n\n    told."""\n'
    assert [(n, words) for n, words, _ in prose.found_in_strings(broken)] == [(4, "of its own")]


COMMENTED = '''"""It hangs on the length.

of its own
"""
x = "nobody"  # nobody reads `beside`
def f(beside):
    """beside: another, behind the eye."""
    raise ValueError  # too large, too small
'''


def test_no_comment_and_no_docstring_has_them() -> None:
    assert [(line, words) for line, words, _ in prose.found_in_comments(COMMENTED)] == [(5, "nobody")]
    found = [(line, words) for line, words, _ in prose.found_in_strings(COMMENTED, messages=False)]
    assert found == [(1, "hangs on"), (3, "of its own")]


def test_a_page_that_is_out_of_date_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    (tmp_path / "plan.md").write_text("older", encoding="utf-8")
    (tmp_path / "gone.md").write_text("no page any more", encoding="utf-8")
    assert {"plan.md", "gone.md", "language.md"} <= set(generator.stale(made()))


def test_every_result_that_a_page_cites_has_date_machine_and_command() -> None:
    """Under the page, where it has a place for the table, and in the reference."""
    listed = made()["measurements.md"]
    cited = [
        (path.name, file)
        for path in sorted((measurements.ROOT / "docs").glob("*.md"))
        for file in measurements.results_of(path.read_text(encoding="utf-8"))
    ]
    assert cited
    for page, file in cited:
        m = measurements.measurement(file)
        assert f"| {m.date} | {m.machine} | {m.command_cell} |" in listed
        text = (measurements.ROOT / "docs" / page).read_text(encoding="utf-8")
        assert measurements.BEGIN in text or page in OTHERS, f"{page} has no table of its measurements"


def test_values_of_plans_are_told_by_device_and_in_the_singular() -> None:
    page = made()["plan.md"]
    assert re.findall(r"^- .*\b1 \w+s\b.*$", page, re.MULTILINE) == []
    told = re.findall(r"^- `\d+` \(([^)]*on a CPU[^)]*)\): (.*)$", page, re.MULTILINE)
    assert told
    assert [t for places, t in told if "GPU" not in places and re.search("shared memory|multiprocessor|block", t)] == []


def test_no_command_stands_for_a_program_that_is_not_kept() -> None:
    """The command in such a row of the list makes another comparison."""
    listed = (measurements.RESULTS / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in listed if measurements.NOT_KEPT in line]
    assert rows
    found = [r for r in made()["measurements.md"].splitlines() if measurements.NOT_KEPT in r]
    assert len(found) == len(rows)
    assert all("`python" not in r for r in found)


OTHERS = ("view.md",)
"""Pages whose tables name machine and date themselves."""


def test_commands_of_products_have_their_help() -> None:
    """They are loaded when one of them runs, so that no list of all commands has them."""
    page = (generator.FOLDER / "commands.md").read_text(encoding="utf-8")
    found = [
        f"lanewise {product} {c.name or c.callback.__name__}"
        for product in PRODUCTS
        for c in import_module(f"lanewise.sims.{product}.command").app.registered_commands
    ]
    assert len(found) >= len(PRODUCTS)
    assert [words for words in found if f"\n## {words}\n" not in page] == []
