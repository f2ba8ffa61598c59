"""Words that read as translated, in the documents and in what lanewise says:
`python -m docs.generator.prose` lists them.

`make style` runs it. Of documents, blocks of code and what commands print are not read; of the
source, strings, docstrings and comments are read.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BETTER = {
    r"(?<!crash or )\bhangs?\b( on)?": "depends on",
    r"\brests on\b": "depends on, requires",
    r"\b(nobody|somebody|whoever)\b": "name the thread, the call, the user; or 'no ...'",
    r"\bof (one's|your|its|their) own\b": "your own ..., custom",
    r"\basked for\b": "requested",
    r"\bnow and then\b": "periodically, sometimes",
    r"\bwhole numbers?\b(?! of\b)": "integer (but: a whole number of steps)",
    r"\btruth values?\b": "boolean",
    r"\bin place of\b": "instead of",
    r"\bbehind the\b(?! (?:body|caller's back|eye|selected)\b)": "after the",
    r"\bbeside\b": "alongside, next to, besides, compared with",
    r"\bgo(es)? on\b": "continues",
    r"\b(is|are) told\b": "reports",
    r", too\b(?! (?:few|large|many|small)\b)": "also",
}
SOUGHT = {
    re.compile(pattern.replace(" ", "[ \\n]"), re.IGNORECASE): better
    for pattern, better in BETTER.items()
}
"""The same, where words may stand on two lines."""
ANY = re.compile("|".join(p.pattern for p in SOUGHT), re.IGNORECASE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`(?:[^`\n]|\n(?!\n))*`")
"""Code in a line, which may go over its end, but not over that of a paragraph."""


def pages() -> list[Path]:
    """The pages that are written by hand, and the reference, which is made of docstrings."""
    return [
        *sorted(ROOT.glob("[A-Z]*.md")),
        *sorted((ROOT / "docs").glob("[!.]*.md")),
        *sorted((ROOT / "docs/coming_from").glob("*.md")),
        *sorted((ROOT / "docs/reference").glob("*.md")),
    ]


def found(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words, and what to write instead, for each of the words in a text."""
    blank = FENCE.sub(_lines_alone, text)
    plain = re.sub(r"[ \t]*\n[ \t]*", "\n", CODE.sub(lambda m: "code" + _lines_alone(m), blank))
    for pattern, better in SOUGHT.items():
        for match in pattern.finditer(plain):
            yield plain.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), better


def _lines_alone(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


GENERATED = (
    "emit/cuda_prelude.py", "runtime/exact_sums_text.py", "primitives/float_sums.py",
    "primitives/compaction.py", "patterns/search/builders/dividing.py", "planning/words.py",
)  # fmt: skip
"""Of src/lanewise: their strings are generated code, or the words of reports that are compared."""
NAMES = ("beside", "beside.", "beside.word.")
"""Strings that are names in kernels."""
PARAMETER = re.compile(r"\bbeside(?=[:,] )")
"""A parameter of that name, where a docstring explains it."""


def found_in_strings(source: str, *, messages: bool = True) -> Iterator[tuple[int, str, str]]:
    """Line, words, and what to write instead, for each of the words in the docstrings of a file.

    messages: whether to read its other strings too.
    """
    docstrings: set[int] = set()
    for n in ast.walk(ast.parse(source)):  # a statement comes before what it is made of
        match n:
            case ast.Expr(value=ast.Constant(value=str(text)) as constant):
                docstrings.add(id(constant))
                if ANY.search(re.sub(r"\n[ \t]*", "\n", text)):
                    for number, words, better in found(PARAMETER.sub("parameter", text)):
                        yield n.lineno + number - 1, words, better
            case ast.Constant(value=str(text)) if messages and ANY.search(text):
                if id(n) in docstrings or text in NAMES:
                    continue
                for pattern, better in SOUGHT.items():
                    for words in pattern.finditer(text):
                        yield n.lineno, words[0], better
            case _:
                pass


def found_in_comments(source: str) -> Iterator[tuple[int, str, str]]:
    """Line, words, and what to write instead, for each of the words in the comments of a file."""
    after_signs = (line[line.index("#") :] for line in source.splitlines() if "#" in line)
    if not any(map(ANY.search, after_signs)):  # to find out where comments begin takes long
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            for _, words, better in found(token.string):
                yield token.start[0], words, better


def main() -> None:
    """List them; the exit code is 1 if there are any."""
    folder = ROOT / "src/lanewise"
    lines: list[str] = []
    for path in [*pages(), *sorted(folder.rglob("*.py"))]:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".md":
            places = [*found(text)]
        else:
            messages = str(path.relative_to(folder)) not in GENERATED
            places = [*found_in_strings(text, messages=messages), *found_in_comments(text)]
        name = path.relative_to(ROOT)
        lines += [f"{name}:{n}: {words!r}: write {better}" for n, words, better in places]
    if lines:
        raise SystemExit("\n".join([*lines, f"{len(lines)} words to replace"]))


if __name__ == "__main__":
    main()
