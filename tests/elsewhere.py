"""The host plays a GPU that is not the current device: `python -m pytest -p tests.elsewhere ...` finds what is computed
elsewhere.

A plugin of pytest. Methods and operators of CuPy's arrays run on the current device, so lanewise computes with arrays
of a device within `on(device)`, or by the functions of `array_module(device)`. Here arrays of lanewise on the host are
of a class that notes what is computed with them outside of those; a test in which anything was noted fails. Needs no
GPU; code of GPUs alone is not seen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

HOST_ALONE = {
    "lanewise.primitives.": "a GPU has functions of its own",
    "lanewise.ir.interpreter": "the interpreter runs on the host",
    "lanewise.launch.slabs": "slabs of sites are those of a CPU",
    "lanewise.patterns.elementwise.totals": "sums and extremes of whole arrays ask the array for its library",
    "lanewise.patterns.search.": "a GPU builds structures, and looks at positions, by kernels",
    "lanewise.records.arrays": "rows are put together on the host",
    "lanewise.records.rows": "the values of a row are rounded on the host",
    "lanewise.sims.gravity.watch": "a GPU watches by kernels",
}
"""Beginnings of modules whose code here is for the host alone, and why."""
METHODS = (
    "sum max min any all mean std var prod copy astype fill sort argsort argmax argmin take put dot nonzero cumsum repeat round clip"
).split()


class State(threading.local):
    """within: how many blocks are open in which the host is the current device."""

    within = 0


STATE, NOTED = State(), set[str]()


class There:
    """The context in which the host is the current device."""

    def __enter__(self) -> None:
        STATE.within += 1

    def __exit__(self, *exception: object) -> None:
        STATE.within -= 1


def note(what: str) -> None:
    """Remember what is computed outside of the blocks, where lanewise is nearer in the stack than a test."""
    frame = None if STATE.within else sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        name = str(frame.f_globals.get("__name__"))
        if name.startswith("lanewise."):
            if not name.startswith(tuple(HOST_ALONE)):
                NOTED.add(f"{name}:{frame.f_lineno} computes {what}")
            return
        if name.startswith("tests.") and name != __name__:
            return
        frame = frame.f_back


def plain(value: Any) -> Any:
    if isinstance(value, Array):
        return value.view(np.ndarray)
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def tracked(value: Any) -> Any:
    return value.view(Array) if isinstance(value, np.ndarray) and value.ndim else value


class Array(np.ndarray):
    """An array of lanewise."""

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **named: Any) -> Any:
        note(function.__name__)
        if "out" in named:
            named["out"] = plain(named["out"])
        return tracked(getattr(function, method)(*plain(list(given)), **named))

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        if function.__name__ not in ("may_share_memory", "shares_memory", "shape", "ndim", "size"):
            note(function.__name__)
        return tracked(function(*plain(given), **{n: plain(v) for n, v in named.items()}))

    def __getitem__(self, place: Any) -> Any:
        found: Any = super().__getitem__(place)
        if isinstance(found, np.ndarray) and found.size and not np.may_share_memory(plain(found), plain(self)):
            note("elements of an array of places")
        return found

    def __setitem__(self, place: Any, value: Any) -> None:
        note("an assignment")
        super().__setitem__(place, value)

    def reshape(self, *shape: Any, **named: Any) -> Any:
        found = super().reshape(*shape, **named)
        if found.size and not np.may_share_memory(plain(found), plain(self)):
            note("a copy in another shape")
        return found


def _noted(name: str) -> Callable[..., Any]:
    method = getattr(np.ndarray, name)

    def call(self: Any, *given: Any, **named: Any) -> Any:
        note(name)
        return method(self, *given, **named)

    return call


for _name in METHODS:
    setattr(Array, _name, _noted(_name))


class Library:
    """NumPy, whose functions compute on the host whatever device is the current one."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, type | ModuleType) or not callable(found):
            return found

        def there(*given: Any, **named: Any) -> Any:
            with There():
                return tracked(found(*given, **named))

        return there


LIBRARY = Library()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:  # which import lanewise
    from lanewise.records import field_views
    from lanewise.runtime import memory
    from lanewise.runtime.host_device import HostDevice

    first = {n: getattr(memory, n) for n in ("bring", "to_host", "module_of", "copy_whole")}
    allocate, view = HostDevice.allocate, field_views.FieldViews._view  # pyright: ignore[reportPrivateUsage]

    def there(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with There():
                return function(*given, **named)

        return call

    def to_host(value: Any) -> Any:
        return plain(value).copy() if isinstance(value, Array) else first["to_host"](value)

    def bring(value: Any, device: str) -> Any:
        return tracked(there(first["bring"])(value, device))

    def module_of(array: Any) -> Any:
        return LIBRARY if isinstance(array, Array) else first["module_of"](array)

    changed = {"bring": bring, "to_host": to_host, "module_of": module_of, "copy_whole": there(first["copy_whole"])}
    for module in [m for n, m in sys.modules.items() if n.startswith("lanewise")]:
        for name, function in changed.items():
            if getattr(module, name, None) is first[name]:
                setattr(module, name, function)
    members: dict[str, Any] = {
        "use": lambda self: There(),
        "arrays": property(lambda self: LIBRARY),
        "allocate": lambda self, nbytes, *, zeroed: tracked(allocate(self, nbytes, zeroed=zeroed)),
        "copy": there(HostDevice.copy),
    }
    for name, member in members.items():
        setattr(HostDevice, name, member)
    field_views.FieldViews._view = lambda *given: tracked(view(*given))  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    noted, _ = sorted(NOTED), NOTED.clear()
    assert not noted, "outside of on(device):\n" + "\n".join(noted)
