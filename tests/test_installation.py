"""What installs an optional part works for lanewise as it is installed: no text names an index, which may not
have it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from lanewise.support.installation import command

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, "pip install 'lanewise[cuda]'"),
        ({"url": "file:///a", "dir_info": {"editable": True}}, "pip install -e '.[cuda]' in the checkout"),
        ({"url": "file:///a", "dir_info": {}}, "pip install '.[cuda]' in the checkout"),
        (
            {"url": "https://a/b.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "pip install 'lanewise[cuda] @ git+https://a/b.git@abc'",
        ),
        ({"url": "https://a/b.whl", "archive_info": {}}, "pip install 'lanewise[cuda] @ https://a/b.whl'"),
    ],
)
def test_the_command_is_that_of_the_installation(origin: dict[str, object] | None, wanted: str) -> None:
    assert command("cuda", origin) == wanted


def test_no_message_and_no_document_names_an_index() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [p for p in (ROOT / "src").rglob("*.py") if p.name != "installation.py"]
    for path in (*sources, ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = path.read_text()
        assert not re.search(r"pip install ['\"]?lanewise", text), path
        asked = re.findall(r"\binstall\(['\"](\w+)['\"]\)", text) + re.findall(r"pip install -e '\.\[(\w+)\]'", text)
        assert set(asked) <= set(extras), path


def test_the_page_lists_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    rows = re.findall(r"^\| (`.+?`) \| ", (ROOT / "docs/install.md").read_text(), re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(extras)
