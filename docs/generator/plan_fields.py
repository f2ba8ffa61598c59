"""The fields of `lw.Plan`, from the declarations in lanewise/planning/plan.py."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from typing import Any, get_args, get_type_hints

import lanewise as lw
from docs.generator import default_shapes
from lanewise.explanation.rows import POINTS
from lanewise.planning.decision import Optimisation
from lanewise.planning.plan import OPTIMISATIONS

KINDS = {
    "pairs": ("cuda", "cpu"),
    "elements": ("elementwise", "elementwise_cpu"),
    "lists": ("items", "items_cpu"),
    "sites": ("sites", ""),
    "points": ("points", "points_cpu"),
    "scatters in order": ("", "in_order"),
}


def pages() -> dict[str, str]:
    """The page of the plan."""
    lines = [
        "# Fields of lw.Plan",
        "",
        f"{len(OPTIMISATIONS)} decisions about a kernel. A field that is left open (`None`) is "
        "decided for the device and the call; `explain` gives the reason.",
        "",
        "[Defaults](../passes.md#defaults) has the default of every field on a GPU and on a CPU. "
        "To see those for your call, print `kernel.compile(...).plan`. For a call that was "
        "[tuned](../tuning.md) it is the tuned plan; `LANEWISE_TUNED=off` ignores that one. "
        f"[{default_shapes.TITLE}](#{default_shapes.ANCHOR}) lists the blocks and tiles that "
        "stencils and threadwise kernels start from.",
        "",
        "The values are those worth trying; `tune` tries them for every field that is not *only on "
        "request*. The neutral one switches the optimisation off. "
        "*Only on request* means that no default has it, because it changes results by more than "
        "the order of additions, or costs accuracy. [Passes](../passes.md) describes each one.",
        "",
        "| field | optimisation | neutral | range | only on request |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += map(_row, OPTIMISATIONS)
    about = _paragraphs()
    for o in OPTIMISATIONS:
        lines += ["", f"## {o.field}", "", f"{_title(o)}.", ""]
        if o.field in about:
            lines += [about[o.field][:1].upper() + about[o.field][1:], ""]
        lines += [*_values(o)]
    lines += ["", *default_shapes.section()]
    return {"plan.md": "\n".join(lines).rstrip() + "\n"}


def _row(o: Optimisation) -> str:
    span = "" if o.limits is None else f"{o.limits[0]:,} to {o.limits[1]:,}"
    asked = "yes" if o.on_request else ""
    return f"| [`{o.field}`](#{o.field}) | {o.name} | `{o.neutral!r}` | {span} | {asked} |"


def _title(o: Optimisation) -> str:
    other = f" (elsewhere: {o.literature})" if o.literature and o.literature != o.name else ""
    return f"{o.name[:1].upper()}{o.name[1:]}{other}"


def _values(o: Optimisation) -> list[str]:
    """What each value does, and the kernels that have it."""
    tried = {
        f"{kind} on {'a GPU' if n == 0 else 'a CPU'}": getattr(o, name)
        for kind, names in KINDS.items()
        for n, name in enumerate(names)
        if name and len(getattr(o, name)) > 1
    }
    if not tried:
        return ["No values are tried: set it explicitly.", *_meanings(o, {}, {})]
    usual = {kernels: _usual(o, values, kernels) for kernels, values in tried.items()}
    head = "values" if o.on_request else "values that tuning tries"
    rows = [(k, ", ".join(f"`{v!r}`" for v in values), usual[k]) for k, values in tried.items()]
    if any(usual.values()):
        lines = [f"| kernels over | {head} | n means |", "| --- | --- | --- |"]
        lines += [f"| {k} | {values} | {text} |" for k, values, text in rows]
    else:
        lines = [f"| kernels over | {head} |", "| --- | --- |"]
        lines += [f"| {k} | {values} |" for k, values, _ in rows]
    return lines + _meanings(o, tried, usual)


def _usual(o: Optimisation, values: tuple[Any, ...], kernels: str) -> str:
    """The sentence that several values share, but for the number in it."""
    counted = Counter(_with_n(_said(o, v, kernels), v) for v in values if type(v) is int)
    text, times = max(counted.items(), key=lambda each: each[1], default=("", 0))
    return text if times > 1 else ""


def _with_n(text: str, value: Any) -> str:
    return re.sub(rf"\b{value!r}\b", "n", text)


def _meanings(
    o: Optimisation, tried: dict[str, tuple[Any, ...]], usual: dict[str, str]
) -> list[str]:
    """A line for each value whose sentence is not the usual one of its kernels."""
    every = [o.neutral, *(v for values in tried.values() for v in values), *_choices(o)]
    lines, told = list[str](), set[str]()
    for value in dict.fromkeys(every):
        texts = dict[str, list[str]]()
        for kernels, values in tried.items():
            if value in values:
                texts.setdefault(_said(o, value, kernels), []).append(kernels)
        for text, places in (texts or {o.describe(value): []}).items():
            if places and all(_with_n(text, value) == usual[k] for k in places):
                continue
            where = f" ({', '.join(places)})" if len(texts) > 1 else ""
            if where or text not in told:
                lines.append(f"- `{value!r}`{where}: {text}")
            told.add(text)
    return ["", *lines] if lines else []


def _said(o: Optimisation, value: Any, kernels: str) -> str:
    """What a value does in kernels such as "points on a CPU"."""
    sentence = POINTS.get(o.field) if kernels.startswith("points") else None
    return (sentence or o.sentence)(value, kernels.endswith("GPU"))


def _choices(o: Optimisation) -> tuple[Any, ...]:
    """The values of a field that takes words: also those that are never tried."""
    kinds = get_args(get_type_hints(lw.Plan)[o.field])
    return tuple(v for kind in kinds for v in get_args(kind))


def _paragraphs() -> dict[str, str]:
    """What the docstring of `lw.Plan` says about each field."""
    text = inspect.getdoc(lw.Plan) or ""
    found = dict[str, str]()
    fields = {o.field for o in OPTIMISATIONS}
    current = list[str]()
    for line in text.splitlines():
        head = re.match(r"^([\w, ]+): ", line)
        named = [n.strip() for n in head[1].split(",")] if head else []
        if head and all(n in fields for n in named):
            current = named
            for n in named:
                found[n] = line[head.end() :]
        elif not line:
            current = []
        else:
            for n in current:
                found[n] += "\n" + line
    return found
