"""Links between the documents lead to files and headings that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "docs/*/*.md", "design/*.md", "bench/results/*.md", "bench/results/*/*.md")
    for p in ROOT.glob(pattern)
)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def text(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def headings(page: Path) -> frozenset[str]:
    """As GitHub and the site name them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ (.*)$", text(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w -]", "", plain).strip().replace(" ", "-")
        found.append(f"{name}-{found.count(name)}" if name in found else name)
    return frozenset(found)


@pytest.fixture
def conf() -> ModuleType:
    from docs import conf  # which asks for the version of lanewise: it need not be installed to collect the tests

    return conf


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_what_exists(page: str) -> None:
    path = ROOT / page
    wrong: list[str] = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text(path))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.is_file() or (place and there.suffix == ".md" and place not in headings(there)):
            wrong.append(target)  # a folder too: the site has no page for one
    assert wrong == []


def test_the_site_has_every_page_that_is_linked(conf: ModuleType) -> None:
    """A link to a page that the site leaves out would be text there; those to the index lead to its first page."""
    on_the_site = {
        p.relative_to(ROOT).as_posix()
        for pattern in conf.include_patterns
        for p in ROOT.glob(f"{pattern}/*.md" if pattern.endswith("**") else pattern)
    }
    on_the_site = {p for p in on_the_site if not any(p == x or p.startswith(f"{x}/") for x in conf.exclude_patterns)}
    missing: set[str] = set()
    for page in on_the_site:
        source = [text(ROOT / page)]
        conf._as_page_of_the_site(None, page.removesuffix(".md"), source)
        targets = (t.partition("#")[0] for t in LINK.findall(re.sub(r"`[^`\n]*`", "", source[0])) if "://" not in t)
        there = {(ROOT / page).parent.joinpath(t).resolve() for t in targets if t.endswith(".md")}
        missing |= {t.relative_to(ROOT).as_posix() for t in there} - on_the_site
    assert len(on_the_site) > 150
    assert missing == set()


def test_links_to_the_index_lead_to_the_first_page_of_the_site(conf: ModuleType) -> None:
    source = ["[all](../README.md#do), [this](README.md)"]
    conf._as_page_of_the_site(None, "docs/coming_from/numba", source)
    assert source == ["[all](../index.md#do), [this](README.md)"]
