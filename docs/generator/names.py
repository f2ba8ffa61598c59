"""Every public name: `lanewise` itself, its errors, `lanewise.io` and the four products."""

from __future__ import annotations

import enum
import importlib
import inspect
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import lanewise as lw
from docs.generator.docstrings import method_of, signature_of, text_of
from docs.generator.values import is_value, text_of_value
from lanewise.language.lattices import Lattice


@dataclass(frozen=True)
class Page:
    """A page of names. rooms: the modules that they are defined in, below `lanewise`; the first
    page that has a name's module lists it.
    """

    file: str
    title: str
    about: str
    rooms: tuple[str, ...]


ARGUMENTS = """

In the signatures below `*arguments: Any, **named: Any` are the arguments of your function, by
position or by name. `help(gravity)` shows the parameters of the kernel `gravity`, with their types.
An argument that does not fit raises `ArgumentError`:

| annotation in the function | argument of a call |
| --- | --- |
| a record, such as `Body` | an array of these records, or a view of one |
| `lw.f32`, `lw.vec3`, ... | a number or a tuple for all elements; in `bind` also `lw.by_step` |
| the same, elementwise | also an array with one value per element |
| `lw.Array1` to `lw.Array3` | a contiguous array of NumPy or CuPy with this type and rank |
| an item of a list, segmentwise | `lw.ragged(...)` |
| `lw.index`, threadwise | none: `grid=` has the number of values of each index |"""
"""The second part of a page: what a call takes."""

PAGES = (
    Page("errors.md", "Errors and warnings", "The exceptions and warnings of lanewise.", ()),
    Page(
        "language.md",
        "The language of kernels",
        "Types, functions and reductions that a kernel may use; most are Python functions as well.",
        ("language", "frontend", "field_values", "builtins"),
    ),
    Page(
        "kernels.md",
        "Kernels",
        "Decorators, and what they return: calls, compiled kernels, explanations." + ARGUMENTS,
        ("patterns.pairwise", "patterns.elementwise", "patterns.threadwise", "patterns.segmentwise",
         "patterns.kernels", "patterns", "launch", "compiler", "explanation", "tuning"),
    ),
    Page(
        "searches.md",
        "Searches and far fields",
        "Which sources a target meets, and lists of neighbours.",
        ("patterns.search",),
    ),
    Page(
        "lattices.md",
        "Lattices, sites and stencils",
        "Collisions, boundaries, streaming, coupled fields.",
        ("patterns.sitewise", "patterns.stencil", "language.lattices"),
    ),
    Page(
        "arrays.md",
        "Records, arrays and layouts",
        "Arrays of records, their layouts, files, populations, meshes.",
        ("records", "layouts", "advice", "runtime.mesh", "primitives"),
    ),
    Page(
        "running.md",
        "Plans, loops, devices and profiles",
        "How a kernel is built and run: plans, loops, devices, profiles, live views, libraries.",
        ("planning", "loops", "launch.by_step", "runtime", "profiling", "interop", "live"),
    ),
)  # fmt: skip
MADE_BY = {
    "lw.Call": "kernel.bind(...)", "lw.Compiled": "kernel.compile(...)",
    "lw.Elementwise": "@lw.elementwise", "lw.Pairwise": "@lw.pairwise",
    "lw.Segmentwise": "@lw.segmentwise", "lw.Threadwise": "@lw.threadwise",
    "lw.Sitewise": "@lw.sitewise(lattice)", "lw.Stencil": "@lw.stencil(lattice)",
    "lw.SiteStepper": "kernel.stepper(sites, ...)", "lw.Observer": "kernel.observer(function)",
    "lw.Steps": "lw.steps(...)", "lw.LiveView": "lw.view(...)",
    "lw.RaggedArray": "lw.ragged(...)", "lw.RecordArray": "Body.array(...)",
    "lw.LayoutChoice": "lw.choose_layout(...)",
}  # fmt: skip
"""Classes that users do not call, and what makes their objects."""

PRODUCTS = ("gravity", "lbm", "boids", "waves")
INSIDE = {
    "io": {"io.vti": ("write_vti",)},
    "lbm": {
        "sims.lbm.obstacles": (
            "Mesh", "Placement", "Round", "SignedDistance", "Solid", "as_kinds", "as_solid", "box",
            "cylinder", "disc", "image_mask", "mesh_mask", "mesh_solid", "porous", "read_mask",
            "sphere", "stl_mask", "stl_solid",
        ),
        "sims.lbm.files": ("FlowFile", "read_flow"),
        "sims.lbm.view.flow": ("plot_flow",),
    },
}  # fmt: skip
"""Names of modules below those of a page that users import: by page, and by module."""

WARNINGS = {
    "runtime.cache": ("CacheWarning",),
    "runtime.compile_workers": ("WorkerWarning",),
    "launch.tuned_plans": ("StoreWarning",),
}
"""Warnings that are no names of `lanewise` itself, by module."""


def public() -> dict[str, Any]:
    """The names of `lanewise` and what they are, without its modules."""
    found = {n: getattr(lw, n) for n in dir(lw) if not n.startswith("_")}
    return {n: thing for n, thing in found.items() if not inspect.ismodule(thing)}


def page_of(thing: Any) -> Page:
    """The page that lists it."""
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return PAGES[0]
    module = _module(thing)
    room = module.removeprefix("lanewise").removeprefix(".")
    fitting = [
        (len(r), page)
        for page in PAGES
        for r in page.rooms
        if room == r or room.startswith(f"{r}.")
    ]
    if not fitting:
        raise LookupError(f"{thing!r} of {module} is on no page: add its room to one in PAGES")
    return max(fitting, key=lambda each: each[0])[1]


def _module(thing: Any) -> str:
    """Where it is defined; classes that show themselves as `lanewise.NAME` are asked for the
    module of a method.
    """
    module = getattr(thing, "__module__", None) or type(thing).__module__
    if module == "lanewise" and inspect.isclass(thing):
        methods = (m for m in vars(thing).values() if inspect.isfunction(m))
        module = next((m.__module__ for m in methods), "lanewise.language")  # vectors have none
    return module


def pages() -> dict[str, str]:
    """All pages of names, by file."""
    names = public()
    made: dict[str, str] = {}
    for page in PAGES:
        own = {n: t for n, t in names.items() if page_of(t) is page}
        about = page.about
        if page is PAGES[0]:
            own |= {
                f"{room}.{n}": getattr(importlib.import_module(f"lanewise.{room}"), n)
                for room, named in WARNINGS.items()
                for n in named
            }
            about += _imported_from(WARNINGS)
        made[page.file] = _page(page.title, about, "lw.", own)
    io = {n: getattr(lw.io, n) for n in lw.io.__all__} | _inside("io")
    about = "Formats of other programs, read and written." + _importing("io")
    made["io.md"] = _page("Files: lanewise.io", about, "lw.io.", io)
    for product in PRODUCTS:
        module = importlib.import_module(f"lanewise.sims.{product}")
        own = {n: getattr(module, n) for n in module.__all__} | _inside(product)
        about = " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
        about += _importing(product)
        made[f"{product}.md"] = _page(f"lanewise.sims.{product}", about, f"{product}.", own)
    return made


def _inside(page: str) -> dict[str, Any]:
    """The names of INSIDE, such as "obstacles.disc": the path that comes after the page's own."""
    return {
        f"{room.partition(f'{page}.')[2]}.{n}": getattr(module, n)
        for room, named in INSIDE.get(page, {}).items()
        for module in [importlib.import_module(f"lanewise.{room}")]
        for n in named
    }


def _importing(page: str) -> str:
    """A paragraph: such names are imported from their own modules."""
    return _imported_from(INSIDE[page]) if page in INSIDE else ""


def _imported_from(modules: Iterable[str]) -> str:
    rooms = [f"`lanewise.{room}`" for room in modules]
    named = " and ".join(filter(None, [", ".join(rooms[:-1]), rooms[-1]]))
    return f"\n\nImport names with a dot from their own module: {named}."


def _page(title: str, about: str, prefix: str, names: dict[str, Any]) -> str:
    ordered = dict(sorted(names.items(), key=lambda each: (each[0].lower(), each[0])))
    contents = ", ".join(
        f"[`{n}`](#{a})" for n, a in zip(ordered, anchors(prefix, ordered), strict=True)
    )
    lines = [f"# {title}", "", about, "", *_wrapped(contents), ""]
    for name, thing in ordered.items():
        lines += [*_entry(prefix + name, thing), ""]
    return "\n".join(lines).rstrip() + "\n"


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def anchors(prefix: str, names: Iterable[str]) -> Iterator[str]:
    """The anchors of headings that are names: the second of two that differ in capitals alone has
    a number behind it.
    """
    seen = Counter[str]()
    for name in names:
        text = (prefix + name).lower().replace(".", "")
        yield f"{text}-{seen[text]}" if seen[text] else text
        seen[text] += 1


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"## {name}"
    yield ""
    if alternatives := _alternatives(thing):
        yield f"One of {alternatives}."
        return
    if inspect.isclass(thing) or inspect.isroutine(thing) or callable(thing):
        made = MADE_BY.get(name)
        shown = f"{made}  # makes one" if made else signature_of(name, thing)
        if inspect.isclass(thing) and issubclass(thing, enum.Enum):
            shown = "\n".join(f"{name}.{member.name}" for member in thing)
        yield from ("```python", shown, "```", "")
    if is_value(thing):
        yield text_of_value(name, thing)
    else:
        yield text_of(thing) if _documented(thing) else _value(thing)
    if inspect.isclass(thing) and not issubclass(thing, BaseException | lw.Record):
        yield from _members(thing)


def _alternatives(thing: Any) -> str:
    """What a union of classes, or a choice of literals, stands for; "" for everything else."""
    if get_origin(thing) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(thing))
    return ", ".join(f"`{c.__name__}`" for c in get_args(thing) if inspect.isclass(c))


def _documented(thing: Any) -> bool:
    """Whether its docstring is its own, not that of its type."""
    own = inspect.getdoc(thing)
    if inspect.isclass(thing) or inspect.isroutine(thing) or isinstance(thing, Lattice):
        return bool(own)
    return bool(own) and own != inspect.getdoc(float)


def _value(thing: Any) -> str:
    """Of a number, whose own docstring is that of every number of its type."""
    if not isinstance(thing, float):
        return f"`{thing!r}`"
    return (
        f"The number {thing!r}, a Python float. In a kernel it is a "
        "[literal](../language.md#promotion) and takes the type of what it is combined with."
    )


def _members(owner: type) -> Iterator[str]:
    """Its public methods, properties and fields that have a docstring of their own; the call of
    an object of it comes first.
    """
    call = inspect.getattr_static(owner, "__call__", None)
    if inspect.isfunction(call) and call.__doc__:
        maker = MADE_BY.get(f"lw.{owner.__name__}", "")
        made = "kernel" if maker.startswith("@") else owner.__name__.lower()
        yield from ("", f"**`{method_of(made, call)}`**", "", text_of(call))
    for name in sorted(n for n in dir(owner) if not n.startswith("_")):
        member = inspect.getattr_static(owner, name)
        function = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
        if not inspect.isroutine(function) and not isinstance(member, property):
            continue
        text = text_of(function)
        if not text or _is_pythons(owner, name):
            continue
        is_property = isinstance(member, property)
        head = name if is_property else method_of(name, function)
        yield from ("", f"**`{head}`**", "", text)


def _is_pythons(owner: type, name: str) -> bool:
    """Whether it comes from a type of Python's own, such as those of numbers."""
    home = next(c for c in owner.__mro__ if name in vars(c))
    return home.__module__ in ("builtins", "enum")
