"""Fields that are read-only: copies where the layout has no view of them, and those of the host's
side. Errors tell writers what to do.

NumPy has arrays that are read-only. CuPy has none, so on a GPU a copy is of a subclass of CuPy's
arrays that refuses what would write to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

import numpy as np

OPERATORS = "add sub mul matmul truediv floordiv mod pow lshift rshift and xor or"
WRITING = (
    "__setitem__",
    *(f"__i{o}__" for o in OPERATORS.split()),
    "fill",
    "partition",
    "put",
    "scatter_add",
    "scatter_max",
    "scatter_min",
    "set",
    "sort",
    "_scatter_op",
)
"""The methods of arrays of CuPy that write to them.

The last one is what `cupy.add.at` and its like call.
"""


COPYING = (
    "copy_from",
    "copy_from_async",
    "copy_from_device",
    "copy_from_device_async",
    "copy_from_host",
    "copy_from_host_async",
    "memset",
    "memset_async",
)
"""The methods of pointers of CuPy that write to memory: `cupy.copyto` calls one of them."""
# as PyTorch does
NOT_SHARED = (
    "a read-only copy is not shared by DLPack, whose consumers may write to it all the same"
)


class FieldCopy(np.ndarray[Any, Any]):
    """A read-only copy of a field, on the host. What is computed of it is an ordinary array.

    It is not made with a call, but of an array: `array.view(FieldCopy)`.
    """

    advice: str

    def __array_finalize__(self, other: Any) -> None:
        self.advice = getattr(other, "advice", "")

    def _check(self) -> None:
        if not self.flags.writeable:
            raise ValueError(f"assignment destination is read-only: {self.advice}")

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check()
        super().__setitem__(key, value)

    def fill(self, value: Any) -> None:
        self._check()
        super().fill(value)

    def sort(self, *arguments: Any, **named: Any) -> None:
        self._check()
        super().sort(*arguments, **named)

    def partition(self, *arguments: Any, **named: Any) -> None:
        self._check()
        super().partition(*arguments, **named)

    def put(self, *arguments: Any, **named: Any) -> None:
        self._check()
        super().put(*arguments, **named)

    def __array_ufunc__(
        self, ufunc: Any, method: Any, *inputs: Any, out: tuple[Any, ...] = (), **named: Any
    ) -> Any:
        written = (*out, *(inputs[:1] if method == "at" else ()))
        if any(isinstance(o, FieldCopy) and not o.flags.writeable for o in written):
            raise ValueError(f"output array is read-only: {self.advice}")
        plain = [np.asarray(x) if isinstance(x, FieldCopy) else x for x in inputs]
        if out:
            named["out"] = tuple(np.asarray(o) if isinstance(o, FieldCopy) else o for o in out)
        return getattr(ufunc, method)(*plain, **named)

    def __dlpack__(self, **named: Any) -> Any:
        if not self.flags.writeable:
            raise BufferError(f"{NOT_SHARED}: {self.advice}")
        return super().__dlpack__(**named)


class Flags:
    """The flags of an array, with one more: whether it may be written to."""

    __slots__ = ("_flags", "writeable")

    def __init__(self, flags: Any, writeable: bool) -> None:
        self._flags, self.writeable = flags, writeable

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flags, name)

    def __getitem__(self, name: str) -> Any:
        return self.writeable if name in ("W", "WRITEABLE") else self._flags[name]


@cache
def device_copy_class(base: type[Any]) -> type[Any]:
    """The class of read-only copies for a library whose own arrays are always writable: a subclass
    of `base`, whose methods share what they know of both.

    A copy and its views refuse methods and operators that write, and calls of the library with one
    of them among the arguments and as `out`. What they are computed to is an ordinary array: it has
    its own memory. Not seen are raw kernels, and calls with such an array as a keyword `out` and
    nothing else of this class.
    """

    def is_kept(array: Any) -> bool:
        """Whether it lies in the memory of a copy."""
        return isinstance(array, made) and array._memory is base.data.__get__(array).mem

    def plain(value: Any) -> Any:
        match value:
            case list():
                return list(map(plain, cast("list[Any]", value)))
            case tuple():
                return tuple(map(plain, cast("tuple[Any, ...]", value)))
            case _:
                return value.view(base) if isinstance(value, made) else value

    def check(outs: Iterable[Any]) -> None:
        for out in outs:
            if is_kept(out):
                raise ValueError(f"output array is read-only: {out.advice}")

    def finalize(self: Any, other: Any) -> None:
        self.advice, self._memory = getattr(other, "advice", ""), getattr(other, "_memory", None)

    def refusing(name: str) -> Callable[..., Any]:
        method = getattr(base, name)

        def refuse(self: Any, *arguments: Any, **named: Any) -> Any:
            if is_kept(self):
                raise ValueError(f"assignment destination is read-only: {self.advice}")
            return method(self, *arguments, **named)

        return refuse

    def on_numpy_function(self: Any, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        check((*_several(named.get("out")), *(inputs[:1] if method == "at" else ())))
        return getattr(ufunc, method)(*plain(inputs), **{n: plain(v) for n, v in named.items()})

    def on_kernel(self: Any, kernel: Any, *arguments: Any, **named: Any) -> Any:
        """CuPy asks this of every argument of its elementwise functions and kernels."""
        check((*arguments[getattr(kernel, "nin", len(arguments)) :], *_several(named.get("out"))))
        return kernel(*plain(arguments), **{n: plain(v) for n, v in named.items()})

    def dlpack(self: Any, *arguments: Any, **named: Any) -> Any:
        if is_kept(self):
            raise BufferError(f"{NOT_SHARED}: {self.advice}")
        return base.__dlpack__(self, *arguments, **named)

    def interface(self: Any) -> Any:
        described = dict(base.__cuda_array_interface__.__get__(self))
        return described | {"data": (described["data"][0], is_kept(self))}

    def data(self: Any) -> Any:
        pointer = base.data.__get__(self)
        if not is_kept(self):
            return pointer
        guarded = _pointer_class(type(pointer))(pointer.mem, pointer.ptr - pointer.mem.ptr)
        guarded.advice = self.advice
        return guarded

    def flags(self: Any) -> Flags:
        return Flags(base.flags.__get__(self), not is_kept(self))

    namespace: dict[str, Any] = {
        "__doc__": "A read-only copy of a field, on a GPU. What is computed of it is an ordinary "
        "array.",
        "__module__": __name__,
        "__array_finalize__": finalize,
        "__array_ufunc__": on_numpy_function,
        "__cupy_override_elementwise_kernel__": on_kernel,
        "__dlpack__": dlpack,
        "toDlpack": dlpack,
        "data": property(data),
        "flags": property(flags),
        **{name: refusing(name) for name in WRITING if hasattr(base, name)},
    }
    if hasattr(base, "__cuda_array_interface__"):
        namespace["__cuda_array_interface__"] = property(interface)
    made: Any = type("DeviceFieldCopy", (base,), namespace)
    return made


@cache
def _pointer_class(base: type[Any]) -> type[Any]:
    """The class of pointers to the memory of a copy."""

    def refuse(self: Any, *arguments: Any, **named: Any) -> None:
        raise ValueError(f"assignment destination is read-only: {self.advice}")

    return type(
        "ReadOnlyPointer", (base,), dict.fromkeys((n for n in COPYING if hasattr(base, n)), refuse)
    )


def field_copy(values: Any, advice: str) -> Any:
    """A new array as a read-only copy of a field. advice: what a writer should do, for the
    error.
    """
    if isinstance(values, np.ndarray):
        locked: Any = values.view()
        locked.flags.writeable = False
        # Code that has memory of NumPy may make it writable again (`setflags(write=True)`), of a
        # buffer that is read-only no code may.
        copy = _of_buffer(locked).view(FieldCopy)
        copy.advice = advice
        return copy
    return device_copy(values, advice)


def _of_buffer(locked: Any) -> np.ndarray[Any, Any]:
    """The same array over a read-only buffer. Of structures it goes through bytes: NumPy does not
    read what it says of a structure within a structure whose length is no multiple of 8.
    """
    if locked.dtype.names is None:
        return np.asarray(memoryview(locked))
    return np.asarray(memoryview(locked.view(np.uint8))).view(locked.dtype)


def device_copy(values: Any, advice: str) -> Any:
    """The same for a new array of a library without read-only arrays."""
    copy = values.view(device_copy_class(type(values)))
    # its views share this piece of memory, results do not
    copy.advice, copy._memory = advice, values.data.mem
    return copy


def is_writable(array: Any) -> bool:
    """Whether what is written to an array is kept: arrays of CuPy say nothing, and are, unless they
    are copies of fields.
    """
    return bool(getattr(array.flags, "writeable", True))


def advice_of(array: Any) -> str:
    """What to do about an array that is read-only, after the words that say so."""
    advice = getattr(array, "advice", "")
    return f": {advice}" if advice else ""


def _several(out: Any) -> tuple[Any, ...]:
    return out if isinstance(out, tuple) else (out,)
