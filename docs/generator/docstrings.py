"""Docstrings and signatures as Markdown."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

# a heading of a docstring: "Parameters" over a line of dashes, or "Attributes:" over indented lines
UNDERLINED = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$", re.MULTILINE)
ENTRY = re.compile(r"^(?:    )?([\w, *.]+): ")


def text_of(thing: object) -> str:
    """The docstring of a name as Markdown; "" without one."""
    text = UNDERLINED.sub(r"**\1**\n\n", inspect.getdoc(thing) or "")
    made = "\n\n".join(_blocks(SECTION.sub(r"**\1**\n", text)))
    return made.replace("```\n\n```py\n", "\n\n")  # an example with an empty line is one


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs; indented blocks become code, doctests as well."""
    for block in re.split(r"\n\s*\n", text):
        lines = block.splitlines()
        if not lines:
            continue
        if lines[0].startswith(">>>"):
            yield "\n".join(["```python", *lines, "```"])
        elif all(line.startswith("    ") for line in lines):
            yield "\n".join(_entries(lines))
        else:
            yield "\n".join(lines)


def _entries(lines: list[str]) -> Iterator[str]:
    """An indented block: a list where its lines name things, else code."""
    if not ENTRY.match(lines[0]):
        yield from [f"```{_language(lines)}", *(line[4:] for line in lines), "```"]
        return
    for line in lines:
        own = line[4:]
        if not own.startswith(" ") and (entry := ENTRY.match(line)):
            yield f"- `{entry[1].strip()}`: {line[entry.end() :]}"
        else:
            yield f"  {own.strip()}"


def _language(lines: list[str]) -> str:
    """Of a block of code: Python where it is some."""
    try:
        ast.parse("\n".join(line[4:] for line in lines))
    except SyntaxError:
        return "text"
    return "py"


def signature_of(name: str, thing: Any) -> str:
    """How a name is called, with the types as they are written; its name alone if it is no
    function.
    """
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parts, arrow = _parts(signature), "" if inspect.isclass(thing) else _arrow(signature)
    one = f"{name}({', '.join(parts)}){arrow}"
    if len(one) <= 96:
        return one
    inside = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inside}){arrow}"


def method_of(name: str, function: Any) -> str:
    """How a method is called, on one line and without `self`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return f"{name}()"
    own = [p for p in signature.parameters.values() if p.name not in ("self", "cls")]
    signature = signature.replace(parameters=own)
    return f"{name}({', '.join(_parts(signature))}){_arrow(signature)}"


def _parts(signature: inspect.Signature) -> list[str]:
    """Its parameters as they are written, with the marks between their kinds."""
    parts = list[str]()
    starred = False
    for p in signature.parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        starred |= p.kind is p.VAR_POSITIONAL
        parts.append(_parameter(p))
        if p.kind is p.POSITIONAL_ONLY and _last_of_its_kind(p, signature):
            parts.append("/")
    return parts


def _arrow(signature: inspect.Signature) -> str:
    returned = signature.return_annotation
    return "" if returned in (signature.empty, None, "None") else f" -> {_written(returned)}"


def _last_of_its_kind(p: inspect.Parameter, signature: inspect.Signature) -> bool:
    return [q for q in signature.parameters.values() if q.kind is p.kind][-1] is p


def _parameter(p: inspect.Parameter) -> str:
    stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    kind = "" if p.annotation is p.empty else f": {_written(p.annotation)}"
    if p.default is p.empty:
        return f"{stars}{p.name}{kind}"
    default = (
        "..." if "<factory>" in repr(p.default) or " at 0x" in repr(p.default) else repr(p.default)
    )
    return f"{p.name}{kind} = {default}" if kind else f"{p.name}={default}"


def _written(annotation: Any) -> str:
    """A type as a reader would write it."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:lanewise\.)(?:\w+\.)*(\w+)", r"\1", text)
    return re.sub(r"\b(?:typing|collections\.abc|types)\.", "", text.strip("'\""))
