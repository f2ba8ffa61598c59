"""Write the pages of docs/reference from the code; the tables of measurements under the pages that
are written by hand, and the cells of their tables of ladders; and the figures of the README and of
bench/results/summary.md. Or say which of them are out of date.

    python -m docs.generator [--check]

With `--check` nothing is written, and the exit code is 1 if a page differs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from docs.generator import (
    commands,
    examples,
    figures,
    ladder_tables,
    measurements,
    names,
    plan_fields,
    settings,
)

FOLDER = Path(__file__).resolve().parent.parent / "reference"


def pages() -> dict[str, str]:
    """The text of every page, by its file name."""
    made: dict[str, str] = {}
    for source in (names, plan_fields, commands, settings, examples, measurements):
        made |= source.pages()
    return {"README.md": index(made), **made}


def index(made: dict[str, str]) -> str:
    """The list of the pages, with the first paragraph of each."""
    lines = [
        "# Reference",
        "",
        "Every page here is generated from the code: `make reference`. `lw.__version__` is the "
        "version.",
        "",
    ]
    for name, text in made.items():
        title, _, rest = text.partition("\n\n")
        lines.append(f"- [{title.removeprefix('# ')}]({name}): {rest.partition(chr(10) * 2)[0]}")
    return "\n".join(lines) + "\n"


def stale(made: dict[str, str]) -> Iterator[str]:
    """The files of docs/reference that are not these pages, and pages whose tables are others."""
    for name in sorted({*made, *(p.name for p in FOLDER.glob("*.md"))}):
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != made.get(name):
            yield name
    for path, text in inserted():
        if path.read_text(encoding="utf-8") != text:
            yield path.name


def inserted() -> Iterator[tuple[Path, str]]:
    """Pages outside of the folder that have generated parts, with their text as it should be."""
    for path, text in measurements.inserted():
        yield path, ladder_tables.with_cells(path.name, text)
    yield from figures.inserted()


def main() -> None:
    """Write, or check."""
    made = pages()
    if "--check" in sys.argv[1:]:
        if wrong := list(stale(made)):
            raise SystemExit(f"out of date: {', '.join(wrong)}; run: make reference")
        return
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in made:
            path.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    for path, text in inserted():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
