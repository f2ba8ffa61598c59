"""One thing in two forms: as the host has it, of any type, and as kernels take it. Functions of the
user's turn one into the other, when one is requested and the other has changed.

What kernels change is known of the arrays themselves: who changes records, or lends their memory to
a caller who may, says so to their `MemorySide`. A kernel that only reads says nothing, so nothing
is turned back.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any, Generic, TypeVar, cast

from lanewise.profiling.copies import converting
from lanewise.records.arrays import RecordArray
from lanewise.records.binding import side_of
from lanewise.records.ragged import RaggedArray, storage_of_lists
from lanewise.records.two_sides import DIRECTIONS, MemorySide
from lanewise.support.attributes import settings_by_name
from lanewise.support.checks import shown
from lanewise.support.errors import ArgumentError

H = TypeVar("H")
D = TypeVar("D")
TO_DEVICE, TO_HOST = DIRECTIONS


class TwoForms(Generic[H, D]):
    """A value on the host, and the form of it that kernels take. Your functions convert one into
    the other, only when one is requested after the other has changed.

    `forms.device` is for kernels. Kernels that write to it, assignments and other holders of its
    memory make the host's form outdated; kernels that only read do not. `forms.host` is for
    reading; to change it, assign it, or use `with forms.changing() as value:`.
    """

    __slots__ = ("__weakref__", "_calls", "_current", "_forms", "_made", "_sides")

    @settings_by_name
    def __init__(self, value: H, *, to_device: Callable[[H], D], to_host: Callable[[D], H]) -> None:
        """value: the host's form. to_device: makes of it an array of records, a ragged array, or a
        tuple, list or dict of them. to_host: makes the host's form of that.

        Neither is called before a caller asks for the other form. Raises `ArgumentError` for what
        is no function.
        """
        for name, function in (("to_device", to_device), ("to_host", to_host)):
            if not callable(function):
                raise ArgumentError(
                    f"TwoForms({name}=) is a function of one form that returns the other, found "
                    f"{shown(function)}"
                )
        self._made: tuple[Callable[[Any], Any], Callable[[Any], Any]] = (to_device, to_host)
        self._forms: list[Any] = [None, value]  # the device's, the host's
        self._current = [False, True]
        self._calls = [0, 0]
        self._sides: tuple[MemorySide, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy has the host's form, and makes a form for the device from it."""
        return _made_again, (self.host, *self._made)

    def __deepcopy__(self, memo: dict[int, Any]) -> TwoForms[H, D]:
        return _made_again(deepcopy(self.host, memo), *self._made)

    def __copy__(self) -> TwoForms[H, D]:
        """Nothing is shared: neither would learn what the other one changes."""
        return deepcopy(self)

    @property
    def device(self) -> D:
        """The form that kernels take: the same object until the host's form changes."""
        if not self._current[0]:
            made = self._turn(0, self._forms[1])
            sides = tuple(_sides_of(made))
            if not sides:
                raise ArgumentError(
                    "TwoForms: to_device returns arrays of records, ragged arrays, or tuples, "
                    f"lists or dicts of them, found {shown(made)}"
                )
            self._follow(sides)
            self._forms[0], self._current[0] = made, True
            self._current[1] = not self._is_lent
        return self._forms[0]

    @property
    def host(self) -> H:
        """The host's form, for reading. Assigning a new one makes the device's form outdated."""
        if not self._current[1]:
            self._forms[1] = self._turn(1, self._forms[0])
            # a caller with an array of its memory may change it at any time
            self._current[1] = not self._is_lent
        return self._forms[1]

    @host.setter
    def host(self, value: H) -> None:
        self._forms[1], self._current = value, [False, True]
        self._unfollow()

    @contextmanager
    def changing(self) -> Generator[H]:
        """The host's form, for changes in place; afterwards the device's form is outdated."""
        value = self.host  # where that fails, the device's form stays the current one
        try:
            yield value
        finally:
            self._current = [False, True]
            self._unfollow()

    @property
    def conversions(self) -> dict[str, int]:
        """How often each function was called: "to device" and "to host"."""
        return dict(zip((TO_DEVICE, TO_HOST), self._calls, strict=True))

    @property
    def _is_lent(self) -> bool:
        return any(side.is_lent for side in self._sides)

    def _turn(self, form: int, other: Any) -> Any:
        """One form of the other one; nothing has changed where the function fails."""
        with converting(DIRECTIONS[form]):
            made = self._made[form](other)
        self._calls[form] += 1
        return made

    def _follow(self, sides: tuple[MemorySide, ...]) -> None:
        self._unfollow()
        if any(side.told is not None for side in sides):
            raise ArgumentError(
                "TwoForms: to_device returned an array that another TwoForms has; return an "
                "independent one, such as a .copy()"
            )
        # without a circle: memory of a GPU is free when this is no longer referenced
        told = partial(_device_changed, weakref.ref(self))
        for side in sides:
            side.tell(told)
        self._sides = sides

    def _unfollow(self) -> None:
        for side in self._sides:
            side.tell(None)
        self._sides = ()

    def __repr__(self) -> str:
        old = [n for n, c in zip(("device", "host"), self._current, strict=True) if not c]
        return f"<two forms{f', {old[0]} old' if old else ''}>"


def _made_again(value: H, to_device: Callable[[H], D], to_host: Callable[[D], H]) -> TwoForms[H, D]:
    return TwoForms(value, to_device=to_device, to_host=to_host)


def _device_changed(forms: weakref.ref[TwoForms[Any, Any]]) -> None:
    if (known := forms()) is not None:
        known._current[1] = False  # pyright: ignore[reportPrivateUsage]


def _sides_of(form: Any) -> Iterator[MemorySide]:
    """Of all arrays of a form of the device. Raises `ArgumentError` for what is no such array."""
    match form:
        case RecordArray():
            yield side_of(cast("RecordArray[Any]", form))
        case RaggedArray():
            yield storage_of_lists(form).side
        case dict():
            for value in cast("Mapping[Any, Any]", form).values():
                yield from _sides_of(value)
        case tuple() | list():
            for value in cast("Sequence[Any]", form):
                yield from _sides_of(value)
        case _:
            raise ArgumentError(
                "TwoForms: to_device returns arrays of records, ragged arrays, or tuples, lists or "
                f"dicts of them, whose changes are noticed; found {shown(form)}"
            )
