"""The site of the documents: `make docs` builds it into build/docs with Sphinx and MyST.

The pages are the Markdown files of the repository as they are, which are readable without the site
as well: those of docs, and those that they link, with results, designs and ARCHITECTURE.md.
"""

from __future__ import annotations

import os
import re
from importlib.metadata import version as installed
from pathlib import PurePosixPath
from typing import Any

project = "lanewise"
author = project_copyright = "the lanewise developers"
version = release = installed("lanewise")
extensions = ["myst_parser"]
# The source folder is the repository: links between its Markdown files are links of the site.
root_doc = "docs/index"
include_patterns = ["docs/**", "design/*", "bench/results/**", "*.md"]
exclude_patterns = ["docs/generator", "docs/README.md"]
html_theme = "furo"
html_title = f"lanewise {version}"
html_static_path = ["static"]
html_extra_path = ["start"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["smartquotes"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
pygments_style = "friendly"
pygments_dark_style = "monokai"

INDEX = "docs/README.md"
"""The index of the repository, whose content the site's first page includes."""


def setup(app: Any) -> None:
    """Sphinx calls it."""
    app.connect("source-read", _as_page_of_the_site)


def _as_page_of_the_site(_app: Any, page: str, source: list[str]) -> None:
    """Links to the index lead to the first page. Pages outside of docs may be in no contents, and
    the search does not find results and designs, which would hide the pages that explain.
    """
    folder = PurePosixPath(page).parent

    def link(found: re.Match[str]) -> str:
        if os.path.normpath(folder / found[1]) != INDEX:
            return found[0]
        return f"]({os.path.relpath('docs/index.md', folder)}{found[2] or ''})"

    text = re.sub(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)", link, source[0])
    search = "nosearch: true\n" if page.startswith(("bench/", "design/")) else ""
    source[0] = text if page.startswith("docs/") else f"---\norphan: true\n{search}---\n{text}"
