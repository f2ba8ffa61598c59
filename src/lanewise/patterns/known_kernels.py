"""The kernels of this program, which have a say in the layout of arrays that leave it open."""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Any

from lanewise.support.errors import LanewiseError

if TYPE_CHECKING:
    from lanewise.patterns.calls import Calls

_numbers = itertools.count()
_known = weakref.WeakValueDictionary[int, Any]()  # in the order in which they were made
_adding = threading.Lock()


def add_kernel(calls: Calls) -> None:
    """Know the calls of a function that a decorator made a kernel of."""
    with _adding:
        _known[next(_numbers)] = calls


def kernels_naming(cls: type[Any]) -> list[Calls]:
    """The calls of the kernels that have a parameter of this record class, in the order in which
    they were made.
    """
    with _adding:
        known = list(_known.values())
    return [calls for calls in known if calls.has_say and _names(calls, cls)]


def _names(calls: Calls, cls: type[Any]) -> bool:
    annotations = getattr(calls.subject.function, "__annotations__", {})
    if not any(
        a is cls or (isinstance(a, str) and cls.__name__ in a) for a in annotations.values()
    ):
        return False
    try:
        return cls in calls.signature.source.annotations().values()
    except LanewiseError:  # said where it is called
        return False
