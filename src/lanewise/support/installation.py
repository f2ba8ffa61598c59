"""The command that installs an optional part of lanewise, as lanewise itself was installed: no
index may have it.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

NAME = "lanewise"


def install(extra: str) -> str:
    """The command for an extra of pyproject.toml, such as "cuda"."""
    return command(extra, _origin())


def command(extra: str, origin: dict[str, Any] | None) -> str:
    """The same by what pip noted of the installation (direct_url.json, PEP 610); None where it came
    from an index.
    """
    if origin is None:
        return f"pip install '{NAME}[{extra}]'"
    url, folder = str(origin.get("url", "")), origin.get("dir_info")
    if folder is None:
        version = origin.get("vcs_info", {})
        at = f"{version['vcs']}+{url}@{version['commit_id']}" if version else url
        return f"pip install '{NAME}[{extra}] @ {at}'"
    return f"pip install {'-e ' if folder.get('editable') else ''}'.[{extra}]' in the checkout"


@cache
def _origin() -> dict[str, Any] | None:
    try:
        text = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:  # run from a folder of sources
        return {"dir_info": {"editable": True}}
    return None if text is None else json.loads(text)
