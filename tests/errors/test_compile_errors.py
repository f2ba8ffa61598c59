"""Everything outside the language is refused, with a text that says where, what was found and what is wanted."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import lanewise as lw
from tests.errors.refused import REFUSED


def refusal(source: str, directory: Path, name: str = "physics") -> lw.CompileError:
    """The error of a module with a kernel."""
    path = directory / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        _ = module.kernel.lowered
    except lw.CompileError as error:
        return error
    pytest.fail(f"accepted:\n{source}")


@pytest.mark.parametrize("topic", REFUSED)
def test_texts(topic: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    texts: list[str] = []
    for number, (what, source) in enumerate(REFUSED[topic].items()):
        directory = tmp_path / str(number)  # a file of its own, so that no cached line of another is shown
        directory.mkdir()
        error = refusal(source, directory)
        texts.append(f"# {what}\n{str(error).replace(f'{directory}/', '')}\n")
    golden(topic, "\n".join(texts))


@pytest.mark.parametrize("topic", [t for t in REFUSED if t != "signature"])
def test_every_text_is_complete(topic: str, tmp_path: Path) -> None:
    """File, line, column, source line, caret, what was found and what is wanted."""
    for number, (what, source) in enumerate(REFUSED[topic].items()):
        if what == "source gone":
            continue
        directory = tmp_path / str(number)
        directory.mkdir()
        error = refusal(source, directory)
        lines = str(error).splitlines()
        assert re.match(rf"{re.escape(str(directory))}/physics\.py:\d+:\d+: \S", lines[0]), what
        assert lines[1].strip() == source.splitlines()[error.location.line - 1].strip(), what
        assert re.fullmatch(r"[ \t]*\^+", lines[2]), what
        assert error.found, what
        assert error.wanted, what
        assert " at 0x" not in str(error), what


def test_two_decorators_of_lanewise_have_a_place(tmp_path: Path) -> None:
    text = (
        "import lanewise as lw\n\n\n@lw.elementwise\n@lw.elementwise\ndef kernel(x: lw.f32) -> lw.f32:\n    return x\n"
    )
    error = refusal(text, tmp_path)
    assert (error.location.file, error.location.line) == (str(tmp_path / "physics.py"), 4)
    assert error.hint == "one decorator of lanewise, directly above the def"
