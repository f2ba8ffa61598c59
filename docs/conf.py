"""The site of the documents: `make docs` builds it into build/docs with Sphinx and MyST.

The pages are the Markdown files as they are, which are readable without the site as well.
"""

from __future__ import annotations

from importlib.metadata import version as installed

project = "lanewise"
author = project_copyright = "the lanewise developers"
version = release = installed("lanewise")
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["generator", "README.md"]
html_theme = "furo"
html_title = f"lanewise {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
myst_enable_extensions = ["smartquotes"]
# links to source, results and designs lead out of the site: they are links of the repository
suppress_warnings = ["myst.xref_missing", "myst.header", "misc.highlighting_failure"]
pygments_style = "friendly"
pygments_dark_style = "monokai"
