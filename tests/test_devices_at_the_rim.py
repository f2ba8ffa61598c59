"""Few files know what a GPU is; CUDA text and CUDA's libraries have places of their own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from tests.storeys import modules, room

MOST_ASKING = 20
"""Files that call `is_gpu`."""

CUDA_TEXT = re.compile(r"__global__|__device__|__shared__|\b(block|thread)Idx\.")


IMPORTED = re.compile(
    r"\blanewise\.runtime\.(?:cuda|cuda_device|cuda_timing)\b|from lanewise\.runtime import (?:.*[ ,]|\([^)]*[\s,])?cuda\b"
)


@cache
def _files() -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in modules().items()}


def test_few_files_ask_whether_a_device_is_a_gpu() -> None:
    asking = [name for name, text in _files().items() if "is_gpu(" in text]
    assert len(asking) <= MOST_ASKING, "\n".join(asking)


def test_the_libraries_of_cuda_are_reached_through_devices() -> None:
    found = {name for name, text in _files().items() if IMPORTED.search(text) and room(name) != "runtime"}
    assert not found


def test_cuda_text_has_places_of_its_own() -> None:
    found = {
        name
        for name, text in _files().items()
        if room(name) not in ("emit", "primitives", "runtime")
        and CUDA_TEXT.search(text)
        and any(map(CUDA_TEXT.search, _texts(ast.parse(text))))
    }
    assert not found


def _texts(tree: ast.AST) -> Iterator[str]:
    """Strings of a module without its docstrings."""
    for node in ast.walk(tree):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Constant) and isinstance(child.value, str) and not isinstance(node, ast.Expr):
                yield child.value
