"""What lanewise asks of a device: memory, the order of work, time, and facts about it.

Code above `runtime` reaches every device through `get_device(name)` and knows no library of a
vendor. What generated code can use on a kind of device is in `lanewise.language.target`. A new
device is a class with these members and one line in `MAKERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, Protocol

from lanewise.language.target import CPU, CUDA, PYTHON, Machine, Target, target_of
from lanewise.runtime.cuda_device import Cuda
from lanewise.runtime.device_facts import Facts, Identity
from lanewise.runtime.host_device import HostDevice
from lanewise.runtime.lease import Lease
from lanewise.runtime.nvrtc import Cubin, Switches
from lanewise.runtime.timing import Stopwatch, Work


class WrittenKernel(Protocol):
    """A compiled kernel of a text that was written by hand."""

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        """Launch blocks in the current order. Pointers are integers, numbers NumPy scalars."""
        ...


class LoadedKernel(WrittenKernel, Protocol):
    """A kernel of generated text.

    constant_lease: of its constant memory, which all calls that are bound to it share.
    """

    @property
    def constant_lease(self) -> Lease: ...
    def constant(self, name: str) -> tuple[int, int]:
        """The address and the size in bytes of an array in constant memory."""
        ...


class Device(Protocol):
    """One device. Arrays are those of its library; sizes are in bytes, times in seconds."""

    @property
    def name(self) -> str:
        """The canonical name, such as "cuda:1"."""
        ...

    @property
    def target(self) -> Target:
        """What its generated code can use."""
        ...

    def title(self) -> str:
        """The name that the vendor gave it."""
        ...

    def architecture(self) -> str:
        """What is compiled for it: "sm_90" for a GPU, the instruction set of a CPU."""
        ...

    def units(self) -> int:
        """How many multiprocessors it has, or threads that kernels of a CPU run on."""
        ...

    def machine(self) -> Machine:
        """What default plans ask of it."""
        ...

    def identity(self) -> Identity:
        """Two devices with equal identities run a kernel alike."""
        ...

    def compilers(self) -> int:
        """How many of its kernels threads can compile at the same time."""
        ...

    def facts(self) -> Facts | None:
        """What the driver says of it; None where no driver does."""
        ...

    @property
    def arrays(self) -> Any:
        """The library of its arrays, whose functions allocate and compute there."""
        ...

    @property
    def overcommits(self) -> bool:
        """Whether allocating succeeds beyond what there is: free memory is requested first."""
        ...

    @property
    def asks_from(self) -> int:
        """Bytes beyond which asking for free memory takes little compared with using what is
        allocated.
        """
        ...

    def free_memory(self) -> int:
        """Bytes that can be allocated now."""
        ...

    def allocate(self, nbytes: int, *, zeroed: bool) -> Any:
        """Bytes (nbytes,) of uint8, aligned for every layout.

        Raises `MemoryError` or `DeviceError` where there is no room.
        """
        ...

    def pinned(self, nbytes: int, what: str) -> Any:
        """Bytes (nbytes,) of the host, of anything, which the device reads without a copy."""
        ...

    def copy(self, to: Any, source: Any) -> None:
        """Copy a whole contiguous array to another one on this device, in the current order."""
        ...

    def copy_at(self, to: int, source: int, nbytes: int) -> None:
        """Copy bytes from one address to another one on this device, in the current order."""
        ...

    def clear(self, address: int, nbytes: int) -> None:
        """Put zeros at an address, in the current order."""
        ...

    def array_at(self, address: int, nbytes: int, dtype: Any) -> Any:
        """The values at an address as an array, which does not keep the memory."""
        ...

    def lend(self, data: Any, last: Any | None) -> tuple[Any, Any]:
        """The same bytes as an array that keeps a loan alive, and that loan.

        It is the last one if that fits.
        """
        ...

    def use(self) -> AbstractContextManager[Any]:
        """A context in which its library computes there, in order with the current stream."""
        ...

    def synchronize(self) -> None:
        """Wait for the work of the current stream."""
        ...

    def is_busy(self) -> bool:
        """Whether the current stream has work that is not done; nothing waits."""
        ...

    def replay(self, work: Work) -> Work:
        """The launches of some work, captured once where that can be: what puts them on whatever
        stream is the current one.
        """
        ...

    def is_capturing(self) -> bool:
        """Whether launches go into a graph now, and run whenever that is launched."""
        ...

    def lease(self, what: str) -> Lease:
        """A lease of memory of the device that `what` writes anew in every call."""
        ...

    def fetching(self, nbytes: int) -> AbstractContextManager[None]:
        """While it lasts the cache asks memory for so many bytes at a time, if that can be set."""
        ...

    def seconds(self, work: Work) -> float:
        """Run work once and return its time on the device."""
        ...

    def stopwatch(self, works: Sequence[Work], once: float, *, waits: bool = False) -> Stopwatch:
        """Times works that take turns; `once` is a first guess at the seconds of one.

        waits: whether the host takes part in them, so that no graph can hold them.
        """
        ...

    def begin(self, text: str, name: str, arch: str | None, asked: Switches) -> None:
        """Begin to compile a generated text while the caller continues, where that is possible.

        arch: another architecture than its own.
        """
        ...

    def load_cubin(self, cubin: Cubin, name: str, threads: int) -> LoadedKernel:
        """A kernel of machine code that was compiled for it. Raises `DeviceError` on the host."""
        ...

    def load(self, text: str, name: str, threads: int, shared: int = 0) -> WrittenKernel:
        """The kernel of a text in the device's own language, loaded once.

        threads: of a block. shared: bytes of shared memory that a launch gives a block. Raises
        `DeviceError` on the host, whose primitives are texts of `runtime/written/`.
        """
        ...


MAKERS: dict[str, Callable[[str], Device]] = {
    CUDA.name: Cuda,
    CPU.name: HostDevice,
    PYTHON.name: HostDevice,
}


@cache
def get_device(name: str) -> Device:
    """The device of a name. Whether it exists is not asked, see `runtime.devices.resolve`.

    Raises `DeviceError` for a name that is none.
    """
    return MAKERS[target_of(name).name](name)
