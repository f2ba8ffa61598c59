"""Run the Python of a Markdown document, and compare what it prints with the text shown below each block.

The blocks run in order, in one namespace. They are written to a file in which every line has the number that it has in
the document, because kernels are compiled from the source in a file; errors then name the document's own lines. A block
of `text` that directly follows a block of `python` is the expected output: `...` stands for anything.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import linecache
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, the line on which the text starts, and the output shown below it."""

    language: str
    text: str
    line: int
    output: str | None


def blocks(document: str) -> list[Block]:
    """All fenced blocks, in order."""
    found = list(FENCE.finditer(document))
    result: list[Block] = []
    for match, following in zip(found, [*found[1:], None], strict=False):
        output = None
        if following and following[1] == "text" and not document[match.end() : following.start()].strip():
            output = following[2]
        result.append(Block(match[1], match[2], document.count("\n", 0, match.start(2)) + 1, output))
    return result


def run_blocks(document: str, module: Path, *, without: str | None = None) -> Iterator[tuple[Block, str]]:
    """Each Python block with what it printed. `module` is the file that the blocks are written to.

    without: a pattern; blocks that hold it are not run, nor is what they print compared.
    """
    python = [b for b in blocks(document) if b.language == "python"]
    python = [b for b in python if without is None or not re.search(without, b.text)]
    lines = [""] * (document.count("\n") + 1)
    for block in python:
        text = block.text.splitlines()
        lines[block.line - 1 : block.line - 1 + len(text)] = text
    module.write_text("\n".join(lines), encoding="utf-8")
    linecache.checkcache(str(module))
    namespace = {"__name__": module.stem, "__file__": str(module)}
    for block in python:
        tree = ast.increment_lineno(ast.parse(block.text), block.line - 1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(tree, str(module), "exec", dont_inherit=True), namespace)  # not our own `annotations`
        yield block, printed.getvalue().replace(f"{module.parent}/", "")


def differences(block: Block, printed: str) -> str:
    """What is wrong with the output that the document shows, or nothing."""
    if block.output is None:
        return f"line {block.line}: prints what is not shown:\n{printed}" if printed.strip() else ""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    wanted, found = _without_lines(block.output), _without_lines(printed)
    if doctest.OutputChecker().check_output(wanted, found, flags):
        return ""
    return f"line {block.line}: the document shows\n{block.output}\nbut this was printed:\n{printed}"


def _without_lines(text: str) -> str:
    """Without the line numbers of errors, which change with every line of prose above them."""
    return re.sub(r"\.py:\d+", ".py", "\n".join(line.rstrip() for line in text.splitlines()) + "\n")


def commands(document: str, program: str) -> list[str]:
    """The command lines of `sh` blocks that call `program`; lines that end in a backslash are joined."""
    text = "\n".join(b.text for b in blocks(document) if b.language == "sh").replace("\\\n", " ")
    return [line.split("#")[0].strip() for line in text.splitlines() if line.startswith(program + " ")]
