"""Links between the documents lead to files and headings that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_what_exists(page: str) -> None:
    path = ROOT / page
    wrong: list[str] = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text(path))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (place and there.suffix == ".md" and place not in headings(there)):
            wrong.append(target)
    assert wrong == []
