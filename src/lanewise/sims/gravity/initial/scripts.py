"""Initial conditions of users' own: a function of a script, `script.py:function`, or
`script.py:function(pericentre=2.0)` with arguments.

The function gives `position` and `velocity`, (n, 3), and `mass`, (n,) or one number, of real
numbers: by name, in a dictionary or in an array of records, or as three arrays in this order. By
name it may give `ids`, `component`, `time` and `softening` as well (see `Particles`). A parameter
`bodies` of the function is given how many are requested, and `seed` the seed.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

import lanewise as lw
from lanewise.io.particles import Particles
from lanewise.sims.common.devices import to_host
from lanewise.sims.gravity.initial.registry import DEFAULT_BODIES
from lanewise.support.attributes import near
from lanewise.support.checks import shown
from lanewise.support.errors import InputError
from lanewise.support.numerals import counted
from lanewise.support.scripts import at_work_in, run_file

NEEDED = ("position", "velocity", "mass")
FURTHER = ("ids", "component", "time", "softening")
GIVEN = {"bodies": "--bodies", "seed": "--seed"}
"""Parameters that options give, which no call repeats."""

LISTED = 8  # functions of a script that an error names

_SCRIPT = re.compile(r"(?P<path>.+?\.py)(:(?P<call>.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A function of a script, and the arguments of its call."""

    path: Path
    name: str
    arguments: Mapping[str, Any]


def names_script(ic: str) -> bool:
    """Whether `ic` names a Python file, or a function of one."""
    return _SCRIPT.fullmatch(ic) is not None


def script_text(ic: str) -> str | None:
    """The text of the script that `ic` names, as it is now; None where there is none."""
    named = _SCRIPT.fullmatch(ic)
    path = None if named is None else Path(named["path"])
    if path is None or not path.is_file():
        return None
    return path.read_bytes().decode("utf-8", errors="surrogateescape")


def bodies_of_script(ic: str, bodies: int | None, seed: int | None) -> Particles:
    """The bodies that the function of a script gives. None: no number was requested, or no seed.

    Raises `InputError`, with the file and the line of the function, for what cannot be run, for
    arguments that it does not take, and for bodies that a file could not hold either.
    """
    start = start_of(ic)
    module = run_file(start.path)
    function = _function(module, start)
    return bodies_of(function, bodies, seed, start.arguments, start.path)


def start_of(ic: str) -> ScriptCall:
    """What `script.py:function` or `script.py:function(name=value, ...)` names; nothing is run but
    to list the functions of a script that is named alone.
    """
    named = _SCRIPT.fullmatch(ic)
    assert named is not None
    path, call = Path(named["path"]), (named["call"] or "").strip()
    if not call:
        raise InputError(f"{path}: which function? {_choices(path, run_file(path))}")
    wanted = f"wanted {path}:function or {path}:function(name=value, ...)"
    try:
        tree = ast.parse(call, mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise InputError(f"{ic}: {call!r} is no call of a function; {wanted}") from error
    match tree:
        case ast.Name(id=name):
            return ScriptCall(path, name, {})
        case ast.Call(func=ast.Name(id=name), args=[], keywords=keywords):
            return ScriptCall(path, name, {_named(k, ic): _value(k, ic) for k in keywords})
        case ast.Call(func=ast.Name()):
            raise InputError(f"{ic}: arguments have names here; {wanted}")
        case _:
            raise InputError(f"{ic}: {call!r} is no call of a function; {wanted}")


def _named(keyword: ast.keyword, ic: str) -> str:
    if keyword.arg is None:
        raise InputError(f"{ic}: ** has no values here; wanted name=value")
    if keyword.arg in GIVEN:
        raise InputError(
            f"{ic}: {keyword.arg} is an option; wanted {GIVEN[keyword.arg]} next to it"
        )
    return keyword.arg


def _value(keyword: ast.keyword, ic: str) -> Any:
    try:
        return ast.literal_eval(keyword.value)
    except (ValueError, TypeError, MemoryError, RecursionError) as error:
        text = ast.unparse(keyword.value)
        raise InputError(
            f"{ic}: {keyword.arg}={text}: wanted a value as Python writes it: a number, text, "
            "True, None, or several in brackets"
        ) from error


def _function(module: ModuleType, start: ScriptCall) -> Callable[..., Any]:
    if not hasattr(module, start.name):
        alike = near(start.name, _functions(module)) or ";"
        raise InputError(
            f"{start.path} has no function {start.name!r}{alike} {_choices(start.path, module)}"
        )
    function = getattr(module, start.name)
    if not callable(function):
        raise InputError(
            f"{start.path}: {start.name} is no function, found {shown(function)}; "
            f"{_choices(start.path, module)}"
        )
    return function


def _functions(module: ModuleType) -> list[str]:
    """The names of a script's own functions, in their order."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]


def _choices(path: Path, module: ModuleType) -> str:
    own = [f"{path}:{name}" for name in _functions(module)]
    if not own:
        return "it has none"
    more = len(own) - LISTED
    if more > 1:
        return f"wanted {', '.join(own[:LISTED])} or one of {more} others"
    return f"wanted {' or '.join(own)}"


# ------------------------------------------------------------ a function, from anywhere


def bodies_of(
    function: Callable[..., Any],
    bodies: int | None,
    seed: int | None,
    arguments: Mapping[str, Any],
    path: Path | None = None,
) -> Particles:
    """The bodies that `function` gives; `path`: the script that it is of."""
    place = _place(function, path)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise InputError(f"{place} is an async function, which nothing awaits here; wanted def")
    given = _arguments(function, bodies, seed, arguments, place)
    if path is None:
        result = function(**given)
    else:
        with at_work_in(path, f"{place} failed"):
            result = function(**given)
    try:
        particles = _particles(result)
    except InputError as error:
        raise InputError(f"{place} gives bodies that are none: {error}") from error
    if bodies not in (None, len(particles)):
        made = counted(len(particles), "body", "bodies")
        raise InputError(
            f"{place} gives {made}, not {bodies:,}; leave --bodies out, or have it take bodies and "
            "give so many"
        )
    return particles


def _place(function: Callable[..., Any], path: Path | None) -> str:
    """File, line and name, for messages."""
    inner: Any = inspect.unwrap(getattr(function, "func", function))
    code = getattr(inner, "__code__", None)
    name = f"{getattr(inner, '__name__', type(function).__name__)}()"
    if code is None or (path is not None and Path(code.co_filename) != path.resolve()):
        return name if path is None else f"{path}: {name}"
    return f"{path or code.co_filename}:{code.co_firstlineno}: {name}"


def _arguments(
    function: Callable[..., Any],
    bodies: int | None,
    seed: int | None,
    arguments: Mapping[str, Any],
    place: str,
) -> dict[str, Any]:
    """Those of the call, with `bodies` and `seed` for a function that takes them."""
    try:
        signature = inspect.signature(function)
    except Exception as error:  # of an object that can be called, whatever its methods raise
        raise InputError(f"{place}: what it takes is not known; wanted a plain function") from error
    takes = signature.parameters
    given = dict(arguments)
    if "seed" in takes:
        given["seed"] = seed or 0
    elif seed is not None:
        raise InputError(f"{place} takes no seed; leave the seed out")
    if "bodies" in takes and (bodies or takes["bodies"].default is inspect.Parameter.empty):
        given["bodies"] = bodies or DEFAULT_BODIES
    try:
        signature.bind(**given)
    except TypeError as error:
        wrong = next((n for n in arguments if n not in takes), "")
        names = ", ".join(takes) or "nothing"
        hint = near(wrong, takes) if wrong else ""
        raise InputError(f"{place}: {error}{hint or ';'} it takes {names}") from error
    return given


def _particles(result: Any) -> Particles:
    """Checked bodies from what the function gave."""
    match result:
        case Particles():
            named = {name: getattr(result, name) for name in (*NEEDED, *FURTHER)}
        case lw.RecordArray():
            named = {f.name: to_host(getattr(result, f.name)) for f in result.record.fields}
        case np.ndarray() if result.dtype.names:
            named = {name: result[name] for name in result.dtype.names}
        case Mapping():
            named = dict(cast("Mapping[str, Any]", result))
        case tuple() | list() if len(cast("list[Any]", result)) == len(NEEDED):
            named = dict(zip(NEEDED, cast("list[Any]", result), strict=True))
        case _:
            raise InputError(
                f"found {shown(result)}; wanted position, velocity and mass: a dictionary, an "
                "array of records, or three arrays"
            )
    for name in named:
        if name not in (*NEEDED, *FURTHER):
            wanted = near(str(name), (*NEEDED, *FURTHER)) or ";"
            raise InputError(
                f"{name!r} is nothing that bodies have{wanted} wanted "
                f"{', '.join(NEEDED)}, and perhaps {', '.join(FURTHER)}"
            )
    if missing := [name for name in NEEDED if name not in named]:
        raise InputError(f"there is no {' and no '.join(missing)}; wanted {', '.join(NEEDED)}")
    return Particles.of(**named)
