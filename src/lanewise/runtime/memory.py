"""Bytes on a device: checked allocation, and arrays of any library brought there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.language.target import CPU
from lanewise.layouts import ALIGNMENT
from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.devices import cuda_name
from lanewise.runtime.mesh import Mesh
from lanewise.support.errors import ArgumentError, DeviceError

NAMED = 3  # pieces of memory that a refusal names, the largest ones


@dataclass(frozen=True, slots=True)
class Need:
    """Memory that a caller is about to allocate: what for, in words."""

    device: str
    nbytes: int
    what: str


def available_memory(device: str) -> int:
    """Bytes that can be allocated now."""
    return get_device(device).free_memory()


def require_memory(device: str, nbytes: int, what: str) -> None:
    """Refuse, before anything is allocated, what cannot fit; raises `DeviceError` with both
    figures.
    """
    if nbytes > (available := available_memory(device)):
        raise DeviceError(
            f"{what} needs {nbytes:,} bytes on {device!r}, and {available:,} are available"
        )


def require_together(who: str, needs: Iterable[Need], remedy: str) -> None:
    """Refuse, before any of it is allocated, memory that does not fit together, on each device.

    Raises `DeviceError` with the sum, the largest pieces, what there is, and the remedy. Where the
    sum is so small that asking would cost more than using it, it is not requested.
    """
    by_device: dict[str, list[Need]] = {}
    for need in needs:
        by_device.setdefault(need.device, []).append(need)
    for device, pieces in by_device.items():
        total, there = sum(n.nbytes for n in pieces), get_device(device)
        if total <= there.asks_from or there.is_capturing():
            continue
        if total > (available := there.free_memory()):
            pieces = [n for n in pieces if n.nbytes]
            raise DeviceError(
                f"{who} needs {total:,} bytes on {device!r}, and {available:,} are available: "
                f"{_largest(pieces)}; {remedy}"
            )


def _largest(pieces: list[Need]) -> str:
    """What needs most, each with its bytes, and the others together."""
    pieces = sorted(pieces, key=lambda n: -n.nbytes)
    named = [f"{n.nbytes:,} for {n.what}" for n in pieces[:NAMED]]
    if rest := pieces[NAMED:]:
        named.append(f"{sum(n.nbytes for n in rest):,} for {len(rest)} more")
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def allocate(device: str, nbytes: int, what: str, *, zeroed: bool = True) -> Any:
    """Bytes, aligned for every layout: a NumPy array on the host, a CuPy array on a GPU.

    zeroed: without it a GPU's memory holds anything, for those who write all of it. Raises
    `DeviceError` with what is needed and what there is.
    """
    there = get_device(device)
    if there.overcommits and nbytes > there.asks_from:
        require_memory(device, nbytes, what)
    try:
        return there.allocate(nbytes, zeroed=zeroed)
    except DeviceError:
        require_memory(device, nbytes, what)  # which says what there is
        raise
    except MemoryError as error:  # a limit of the process, which is not known beforehand
        raise DeviceError(
            f"{what} needs {nbytes:,} bytes on {device!r}, which cannot be allocated"
        ) from error


def allocate_beside(device: str, nbytes: int, what: str) -> Any:
    """Zeroed bytes of the host that a device copies from and to without a detour; aligned for every
    layout.

    For a GPU the system never moves them. Raises `DeviceError` where there is no room for them.
    """
    if get_device(device).target.host_memory:
        return allocate(CPU.name, nbytes, what)
    require_memory(CPU.name, nbytes, what)
    raw = get_device(device).pinned(nbytes + ALIGNMENT, what)
    raw.fill(0)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + nbytes]


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Several pieces of memory: `pieces[name]` are its bytes, `addresses[name]` is where they
    begin. whole: the allocation, where they are one.
    """

    views: Mapping[str, Any]
    addresses: Mapping[str, int]
    whole: Any = None

    @classmethod
    def of(cls, views: Mapping[str, Any], whole: Any = None) -> Pieces:
        return cls(views, {name: address(view) for name, view in views.items()}, whole)

    def __getitem__(self, name: str) -> Any:
        return self.views[name]


def _nothing(pieces: Pieces) -> None:
    """Nothing has to be in memory before it is used."""


class Reserve(Protocol):
    """At least that many bytes by name, the same ones until more are requested.

    zeroed: they are zero at first, and their users leave them so.
    """

    def __call__(self, name: str, nbytes: int, what: str, /, *, zeroed: bool) -> Any: ...


class Room:
    """Memory that `PlannedPieces` of the same names and other sizes have in turn: the first bytes
    of each piece.
    """

    __slots__ = ("holder", "reserve")

    def __init__(self, reserve: Reserve) -> None:
        self.reserve = reserve
        # who filled it last; what the others have in there is gone
        self.holder: PlannedPieces | None = None


class PlannedPieces:
    """Pieces of memory whose sizes are known, and which are allocated together when a caller first
    asks for one; aligned for every layout, and not zeroed on a GPU.

    fill: what has to be in them before anybody uses them. clean: pieces that are zero before and
    after every use.
    """

    __slots__ = ("_clean", "_device", "_fill", "_made", "_room", "_sizes", "_what")

    def __init__(
        self,
        device: str,
        sizes: Mapping[str, int],
        what: str,
        fill: Callable[[Pieces], None] = _nothing,
        clean: Iterable[str] = (),
    ) -> None:
        self._device, self._sizes, self._what, self._fill = device, sizes, what, fill
        self._clean = frozenset(clean)
        self._made: Pieces | None = None
        self._room: Room | None = None

    def share(self, room: Room) -> None:
        """Lie in memory that others have as well: `settle` before each use."""
        reserve, clean, what = room.reserve, self._clean, self._what
        self._made = Pieces.of(
            {
                name: reserve(name, nbytes, what, zeroed=name in clean)[:nbytes]
                for name, nbytes in self._sizes.items()
            }
        )
        self._room = room

    def settle(self) -> None:
        """Put into shared memory what has to be there, if others had it meanwhile."""
        room, made = self._room, self._made
        if room is None or made is None or room.holder is self:
            return
        room.holder = None  # what is half filled is of no use
        self._fill(made)
        room.holder = self

    @property
    def clean(self) -> list[Any]:
        """What of it is zero before and after every use."""
        return [self.pieces[name] for name in sorted(self._clean)]

    @property
    def device(self) -> str:
        return self._device

    @property
    def need(self) -> Need:
        """What allocating them takes."""
        nbytes = sum(-(-n // ALIGNMENT) * ALIGNMENT for n in self._sizes.values())
        return Need(self._device, nbytes, self._what)

    @property
    def pieces(self) -> Pieces:
        if (made := self._made) is None:
            made = allocate_pieces(self._device, self._sizes, self._what)
            if self._clean:
                with on(self._device):
                    for name in self._clean:
                        made[name].fill(0)
            self._fill(made)
            self._made = made
        return made

    @property
    def addresses(self) -> Mapping[str, int]:
        return self.pieces.addresses

    def __getitem__(self, name: str) -> Any:
        return self.pieces[name]


def allocate_pieces(device: str, sizes: Mapping[str, int], what: str) -> Pieces:
    """Pieces of that many bytes each, aligned for every layout; not zeroed on a GPU."""
    starts = list(accumulate((-(-n // ALIGNMENT) * ALIGNMENT for n in sizes.values()), initial=0))
    whole = allocate(device, starts[-1], what, zeroed=False)
    begins = zip(sizes.items(), starts, strict=False)
    return Pieces.of({name: whole[at : at + nbytes] for (name, nbytes), at in begins}, whole)


def address(array: Any) -> int:
    """Where the elements of an array on any device begin."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def overlap(a: Any, b: Any) -> bool:
    """Whether the bytes of two arrays (both on the host, or both on one GPU) have any in common, by
    their first and last one.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)

    def ends(x: Any) -> tuple[int, int]:
        start = address(x)
        return start, start + int(x.nbytes)

    (first, last), (start, stop) = ends(a), ends(b)
    return first < stop and start < last


def copy_bytes(device: str, to: Any, source: Any) -> None:
    """Copy a whole contiguous array to another one of as many bytes; on a GPU on the current
    stream, so that a graph may hold it.
    """
    get_device(device).copy(to, source)


def array_module(device: str) -> Any:
    """The library of arrays on a device: NumPy, or CuPy with functions that allocate and compute
    there.
    """
    return get_device(device).arrays


def module_of(array: Any) -> Any:
    """The library of arrays where one lies, that one being of NumPy or of CuPy."""
    return (
        np if isinstance(array, (np.ndarray, np.generic)) else cuda.library(cuda.device_of(array))
    )


def device_of(array: Any) -> str:
    """The device that an array of NumPy or CuPy lies on."""
    return CPU.name if isinstance(array, (np.ndarray, np.generic)) else cuda.device_of(array)


def on(device: str) -> AbstractContextManager[Any]:
    """A context in which arrays of a device are computed with: on a GPU their methods and operators
    run on the current one.
    """
    return get_device(device).use()


def together(devices: Iterable[str]) -> AbstractContextManager[Any]:
    """A context in which several devices work at the same time: after it the current stream is
    behind all of them. On the host there is nothing to order.
    """
    names = [d for d in devices if not get_device(d).target.host_memory]
    return cuda.together(names) if names else nullcontext()


Landed = cuda.Landed
"""Work that devices do aside, and what waits for it."""


def reaches(device: str, array: Any) -> bool:
    """Whether kernels of a device may use an array on any GPU, from now on."""
    return not get_device(device).target.host_memory and cuda.reaches(device, array)


def aside(devices: Iterable[str], work: Callable[[], object]) -> Landed:
    """Put work of devices on their streams for copies, which do not wait for what follows, nor does
    that wait for them until `Landed.wait`. On the host it is done at once.
    """
    names = [d for d in devices if not get_device(d).target.host_memory]
    if names:
        return cuda.aside(names, work)
    work()
    return Landed()


DLPACK_CUDA = (2, 13)  # kinds of memory: of a GPU, and of one that the host can read too


def home(value: Any) -> str | None:
    """The GPU that an array of any library lies on; None for what lies on the host, or is no
    array.
    """
    if isinstance(value, type | np.ndarray | np.generic):
        return None
    if (kind := getattr(value, "__dlpack_device__", None)) is not None:
        try:
            library, number = kind()
        except Exception:  # of the user's class: who reads the array says what is wrong
            return None
        return cuda_name(int(number)) if int(library) in DLPACK_CUDA else None
    if hasattr(value, "__cuda_array_interface__"):
        return cuda.device_of(cuda.cupy().asarray(value))
    return None


def bring(value: Any, device: str) -> Any:
    """An array-like (NumPy, CuPy, DLPack, `__cuda_array_interface__`, lists) as an array of the
    device's library.
    """
    if isinstance(mesh := getattr(value, "mesh", None), Mesh):
        raise ArgumentError(
            f"an array on one device is wanted, found one on a mesh ({mesh}); .numpy() is a copy "
            "of it on the host"
        )
    on_gpu = home(value) is not None
    if not get_device(device).target.host_memory:
        with cuda.use(device):
            return _moved(_of_gpu(value), device) if on_gpu else cuda.cupy().asarray(value)
    if on_gpu:
        return to_host(_of_gpu(value))
    if hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
        return np.from_dlpack(value)
    result = np.asarray(value)
    if result.dtype.kind not in "biuf":
        raise ArgumentError(
            f"an array of numbers is needed, found {type(value).__name__} with dtype "
            f"{result.dtype}{_instead(result.dtype)}"
        )
    return result


def _instead(dtype: np.dtype[Any]) -> str:
    """What to do with records where numbers are wanted."""
    if dtype.names is None:
        return ""
    return f"; give one of its columns, {', '.join(map(repr, dtype.names))}"


def _of_gpu(value: Any) -> Any:
    """An array of another library on a GPU, as one of CuPy that lies in the same memory.

    By DLPack if there is a choice: the producer makes our stream wait for what still fills the
    array. `__cuda_array_interface__` need not say which stream that is, and JAX, which fills arrays
    behind the caller's back, does not.
    """
    module = cuda.cupy()
    if isinstance(value, module.ndarray):
        return value
    if not hasattr(value, "__dlpack__"):
        return module.asarray(value)
    _, number = value.__dlpack_device__()
    with cuda.use(cuda_name(int(number))):  # whose stream is to wait
        return module.from_dlpack(value)


def _moved(array: Any, device: str) -> Any:
    """An array of CuPy on `device`: itself where it lies there, else a copy, which is there when
    this returns.
    """
    if (source := device_of(array)) == device:
        return array
    with cuda.use(source):
        whole = cuda.cupy().ascontiguousarray(array)
    result = cuda.library(device).empty(whole.shape, whole.dtype)
    _copy_across(result, whole)
    return result


def _copy_across(to: Any, source: Any) -> None:
    """Copy a contiguous array of a GPU to another one, on any GPU.

    Between two of them it is there when this returns.
    """
    if (device := device_of(to)) == (other := device_of(source)):
        return cuda.copy_within(device, int(to.data.ptr), int(source.data.ptr), int(source.nbytes))
    cuda.synchronize(other)
    with cuda.use(device):
        cuda.receive(to, source)
    return cuda.synchronize(device)


def to_host(value: Any) -> Any:
    """A NumPy array with the contents of a device array."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value
    return cuda.library(cuda.device_of(value)).asnumpy(value)


def joined(arrays: Sequence[Any]) -> Any:
    """The rows of some arrays, one array after the other, where the first one lies."""
    first = arrays[0]
    if len(arrays) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(arrays)
    device = cuda.device_of(first)
    return cuda.library(device).concatenate([bring(a, device) for a in arrays])


def copy_whole(to: Any, source: Any) -> None:
    """Copy a contiguous array to another one of the same shape and type, wherever the two lie."""
    if isinstance(to, np.ndarray):
        to[...] = to_host(source)
    elif isinstance(source, np.ndarray):
        with cuda.use(cuda.device_of(to)):
            to.set(source)
    else:
        _copy_across(to, source)


class _Memory:
    """Memory of an array for NumPy, which keeps the array alive."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        place = array.__array_interface__
        self.__array_interface__ = {**place, "data": (place["data"][0], False)}


def unlocked(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory as an array that may be written to: generated code is compiled for such
    alone. Only for kernels that read it.
    """
    return np.asarray(_Memory(array))


def read_only(array: Any) -> Any:
    """An array that was made for its reader: on the host no caller can write to it and hope for an
    effect. CuPy has no such arrays.
    """
    if isinstance(array, np.ndarray):
        array.flags.writeable = False
    return array
