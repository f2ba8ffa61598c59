"""Arrays and launches on an NVIDIA GPU: CuPy for memory and streams, cuda.core for kernels.

Kernels of hand-written text are loaded once: a query makes a structure in every call, and loading
takes longer than building.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache, partial
from types import ModuleType
from typing import Any

from lanewise.language.target import is_gpu
from lanewise.runtime.devices import cuda_name, cuda_number, cuda_started
from lanewise.runtime.here import HERE
from lanewise.runtime.lease import Lease
from lanewise.runtime.nvrtc import Cubin, compile_cubin, cuda_core
from lanewise.support.errors import DeviceError
from lanewise.support.installation import install
from lanewise.support.interrupts import interrupts_wait


@cache
@interrupts_wait()
def cupy() -> Any:
    """CuPy, imported when a GPU is first used.

    Raises `DeviceError` where it is not installed, and in a child of a process that had used CUDA.
    """
    try:
        import cupy as module  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise DeviceError(
            f"memory of a GPU is reached through CuPy, which is not installed: {install('cuda')}"
        ) from error

    cuda_started()

    return module


# so that a child learns of it, and no call has to ask for the process
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=cupy.cache_clear)


_THREAD = threading.local()
NOT_READY = 600  # `cudaErrorNotReady`: there is work that is not done


def use(device: str) -> Any:
    """A context in which CuPy allocates and launches on `device`, in order with the current stream
    of the thread.
    """
    if not hasattr(_THREAD, "begun"):
        _begin_thread()
    number = cuda_number(device)
    # every call asks several times: entering the current device again takes longer than asking
    if cupy().cuda.runtime.getDevice() == number:
        return HERE
    return cupy().cuda.Device(number) if number in _together() else Elsewhere(number)


class Elsewhere:
    """Work on a device that is not the current one, as if it were put on the current stream of the
    current one.

    The streams of two devices do not wait for each other. Events let the other device's stream wait
    for what was launched here before, and the stream here for what was launched there, so that its
    readers find what they expect. The host waits for nothing.
    """

    __slots__ = ("_device", "_here", "_number")

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        module = cupy().cuda
        self._here = module.get_current_stream()
        before = _passed(self._here)
        self._device = module.Device(self._number)
        self._device.__enter__()
        _wait(module.get_current_stream(), before)

    def __exit__(self, *exception: object) -> None:
        after = _passed(cupy().cuda.get_current_stream())
        self._device.__exit__(*exception)
        _wait(self._here, after)


def _together() -> frozenset[int]:
    """The devices that this thread has let loose (`together`)."""
    return getattr(_THREAD, "together", frozenset())


@contextmanager
def together(devices: Iterable[str]) -> Generator[None]:
    """A context in which several devices work at the same time.

    All of them are behind what the current stream had to do, and after it the current stream is
    behind all of them. Within, `use` of one of them waits for no other: code that reads what
    another one writes says so with its own events (`runtime/exchange.py`).
    """
    outer, here = _together(), int(cupy().cuda.runtime.getDevice())
    wanted = frozenset(map(cuda_number, devices))
    if wanted <= outer | {here}:
        yield
        return
    others = sorted(wanted - outer - {here})
    before = passed()
    for number in others:
        with cupy().cuda.Device(number):
            wait_for(before)
    _THREAD.together = outer | wanted | {here}
    try:
        yield
    finally:
        _THREAD.together = outer
        for number in others:
            with cupy().cuda.Device(number):
                after = passed()
            wait_for(after)


class Landed:
    """What devices put on their copy streams: events behind it, by device."""

    def __init__(self) -> None:
        self.events: dict[str, Any] = {}

    def wait(self) -> None:
        """Let the current stream of each device wait for it; within `together`."""
        for device, event in self.events.items():
            with use(device):
                wait_for(event)

    def is_under_way(self, device: str) -> bool:
        """Whether a device is not done with it."""
        return not has_passed(self.events.get(device))


@cache
def copy_stream(device: str) -> Any:
    """The stream of a device for copies that run at the same time as its kernels."""
    with use(device):
        return preferred_stream()


def aside(devices: Iterable[str], work: Callable[[], object]) -> Landed:
    """Put work of devices on their copy streams, behind what they had to do. What they put on their
    own streams after it waits for none of that, until `Landed.wait`. Where `work` raises, it waits.
    """
    names, landed = tuple(dict.fromkeys(devices)), Landed()
    with together(names):
        try:
            with ExitStack() as stack:
                for device in names:
                    stack.enter_context(use(device))
                    before = passed()
                    stack.enter_context(copy_stream(device))
                    wait_for(before)
                try:
                    work()
                finally:
                    for device in names:
                        with use(device):
                            landed.events[device] = passed()
        except BaseException:  # the caller does not learn what is on these streams by now
            landed.wait()
            raise
    return landed


def passed() -> Any:
    """An event behind what the current stream has to do; None while a graph is captured."""
    return _passed(cupy().cuda.get_current_stream())


def wait_for(event: Any) -> None:
    """Let the current stream wait for an event of any device."""
    _wait(cupy().cuda.get_current_stream(), event)


def has_passed(event: Any) -> bool:
    """Whether what an event is behind is done, or has failed, which the next call says."""
    return event is None or cupy().cuda.runtime.eventQuery(event.ptr) != NOT_READY


def preferred_stream() -> Any:
    """A stream of the current device, whose kernels get the first multiprocessors that become free,
    before the blocks that are left of kernels on streams without priority.

    Other streams and graphs have none. Lower numbers are preferred (CUDA Runtime API,
    "cudaStreamCreateWithPriority").
    """
    return cupy().cuda.Stream(non_blocking=True, priority=-1)


PEER_ALREADY = 704  # `cudaErrorPeerAccessAlreadyEnabled`
# memory, by the class that CuPy has for it, that peers reach only if its owner lets them
CLOSED = ("MemoryAsync", "UnownedMemory", "PythonFunctionAllocatorMemory")


def reaches(device: str, array: Any) -> bool:
    """Whether kernels of a device may use an array on any GPU, from now on."""
    other = device_of(array)
    if device == other:
        return True
    return type(array.data.mem).__name__ not in CLOSED and _has_peer(device, other)


@cache
def _has_peer(device: str, other: str) -> bool:
    runtime, peer = cupy().cuda.runtime, cuda_number(other)
    if not runtime.deviceCanAccessPeer(cuda_number(device), peer):
        return False
    with use(device):
        try:
            runtime.deviceEnablePeerAccess(peer)
        except runtime.CUDARuntimeError as error:
            if error.status != PEER_ALREADY:
                raise
    return True


def receive(to: Any, source: Any) -> None:
    """Put a copy of a contiguous array of any GPU on the current stream, which is of the device
    that `to` lies on.

    Between GPUs without peer access the driver takes it through memory of the host.
    """
    to.data.copy_from_device_async(source.data, int(source.nbytes))


def _passed(stream: Any) -> Any:
    """An event behind what a stream of the current device has to do; None while a graph is
    captured, when nothing runs.
    """
    if stream.is_capturing():
        return None
    event = cupy().cuda.Event(disable_timing=True)
    event.record(stream)
    return event


def _wait(stream: Any, event: Any) -> None:
    if event is not None and not stream.is_capturing():
        stream.wait_event(event)


class Library:
    """CuPy, whose functions allocate and compute on one device, whichever device is the current
    one.

    Methods and operators of its arrays run on the current device all the same: they belong into
    `use(device)`.
    """

    def __init__(self, device: str) -> None:
        self._device = device

    def __getattr__(self, name: str) -> Any:
        found: Any = getattr(cupy(), name)
        if isinstance(found, type | ModuleType) or not callable(found):
            return found

        def there(*arguments: Any, **named: Any) -> Any:
            if (elsewhere := use(self._device)) is HERE:
                return found(*arguments, **named)
            with elsewhere:
                return found(*arguments, **named)

        setattr(self, name, there)
        return there


@cache
def library(device: str) -> Library:
    """The library of arrays on a device."""
    return Library(device)


def device_of(array: Any) -> str:
    """The name of the device that an array of CuPy lies on."""
    return cuda_name(int(array.data.device_id))


def _begin_thread() -> None:
    """Give this thread the context of its device: CuPy leaves a device that is the current one
    alone, and the driver needs a context.
    """
    runtime = cupy().cuda.runtime
    runtime.setDevice(runtime.getDevice())
    _THREAD.begun = True


@cache
def architecture(device: str) -> str:
    """The exact architecture of a device, for example "sm_90"."""
    return f"sm_{cupy().cuda.Device(cuda_number(device)).compute_capability}"


def device_name(device: str) -> str:
    """The name that the vendor gave the GPU."""
    name: bytes = cupy().cuda.runtime.getDeviceProperties(cuda_number(device))["name"]
    return name.decode()


@cache
def multiprocessors(device: str) -> int:
    """How many multiprocessors the GPU has."""
    return int(cupy().cuda.runtime.getDeviceProperties(cuda_number(device))["multiProcessorCount"])


def free_memory(device: str) -> int:
    """Bytes that can still be allocated, counting what CuPy's pool holds unused."""
    module = cupy()
    with use(device):
        free, _ = module.cuda.runtime.memGetInfo()
        return int(free) + int(module.get_default_memory_pool().free_bytes())


def allocate(device: str, nbytes: int) -> Any:
    """Uninitialised bytes on a device; raises `DeviceError` when they do not fit."""
    module = cupy()
    with use(device):
        try:
            return module.empty(nbytes, module.uint8)
        except module.cuda.memory.OutOfMemoryError as error:
            raise DeviceError(
                f"{nbytes:,} bytes do not fit the memory of {device!r}: {free_memory(device):,} "
                "bytes are free"
            ) from error


def is_capturing(device: str) -> bool:
    """Whether what is launched now goes into a graph, and runs whenever that is launched.

    The default stream cannot be captured (CUDA Runtime API, "cudaStreamBeginCapture"): calls on it,
    which are most, ask no more.
    """
    if cupy().cuda.get_current_stream(cuda_number(device)).ptr == 0:
        return False
    with use(device):
        return bool(cupy().cuda.get_current_stream().is_capturing())


MOST_GRIDS = 1024  # of one kernel that are kept: each takes half a microsecond to make


class CudaKernel:
    """One compiled kernel on one device."""

    def __init__(self, device: str, cubin: Cubin, name: str, threads: int, shared: int = 0) -> None:
        """shared: bytes of shared memory that a launch gives a block, besides those that the text
        declares.
        """
        core = cuda_core()
        self.device, self.threads, self._launch = device, threads, core.launch
        with use(device):  # which makes the thread's own device the current one again
            core.Device(cuda_number(device)).set_current()
            self._code = core.ObjectCode.from_cubin(cubin.code)
            self._kernel = self._code.get_kernel(f"{name}_kernel")
        # one, for all calls that are bound
        self.constant_lease = lease(f"the constant memory of {name}", device)
        config = partial(core.LaunchConfig, block=threads, shmem_size=shared)
        self._config = lru_cache(MOST_GRIDS)(config)  # by the grid: sizes may change in every call
        if shared:
            self._allow(shared)

    def launch(self, grid: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        """Put a launch on CuPy's current stream.

        Pointers are Python integers, scalars NumPy scalars.
        """
        if (elsewhere := use(self.device)) is not HERE:
            with elsewhere:
                self.launch(grid, arguments)
            return
        stream = _stream(int(cupy().cuda.get_current_stream().ptr))
        self._launch(stream, self._config(grid), self._kernel, *arguments)

    @interrupts_wait()
    def _allow(self, shared: int) -> None:
        """Beyond 48 KB the driver wants to be told before."""
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

        kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        kernel = driver.CUkernel(int(self._kernel.handle))
        number = driver.CUdevice(cuda_number(self.device))
        (status,) = driver.cuKernelSetAttribute(kind, shared, kernel, number)
        if status != driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(
                f"{shared:,} bytes of shared memory for a block were refused: the driver says "
                f"{status.name}"
            )

    @interrupts_wait()
    def constant(self, name: str) -> tuple[int, int]:
        """The address and the size in bytes of an array in constant memory."""
        from cuda.bindings import driver  # pyright: ignore[reportAttributeAccessIssue]

        with use(self.device):
            status, address, size = driver.cuLibraryGetGlobal(
                driver.CUlibrary(int(self._code.handle)), name.encode()
            )
        if status != driver.CUresult.CUDA_SUCCESS:
            raise DeviceError(
                f"the constant memory {name!r} of a kernel was not found: the driver says "
                f"{status.name}"
            )
        return int(address), int(size)


def copy_within(device: str, to: int, source: int, nbytes: int) -> None:
    """Put a copy from one address of a device to another one on CuPy's current stream."""
    with use(device):
        runtime = cupy().cuda.runtime
        stream = cupy().cuda.get_current_stream()
        runtime.memcpyAsync(to, source, nbytes, runtime.memcpyDeviceToDevice, stream.ptr)


def copy_pinned(device: str, to: int, source: int, nbytes: int) -> None:
    """Put a copy between a device and pinned memory of the host on CuPy's current stream."""
    with use(device):
        runtime = cupy().cuda.runtime
        stream = cupy().cuda.get_current_stream()
        runtime.memcpyAsync(to, source, nbytes, runtime.memcpyDefault, stream.ptr)


def lease(what: str, device: str) -> Lease:
    """A lease of memory of a device (or of the host), which `what` writes anew in every call."""
    if not is_gpu(device):
        return Lease(what)
    return Lease(
        what, partial(_follow, device, cuda_number(device), cupy().cuda.get_current_stream)
    )


def _follow(device: str, number: int, current: Callable[[int], Any], last: Any) -> Any:
    """CuPy's current stream, after the work on the stream `last` (or None) is done where that is
    another one.

    While a graph is captured nothing runs, so there is nothing to wait for: `last` stays what it
    is. Every call of a kernel comes
    here, nearly always on the stream of the call before: that costs a comparison.
    """
    stream = current(number)
    if last is not None and last.ptr == stream.ptr:
        return last
    with use(device):
        if stream.is_capturing():
            return last
        if last is not None:
            last.synchronize()
        return stream


@cache
def _stream(handle: int) -> Any:
    core = cuda_core()
    return core.Device().default_stream if handle == 0 else core.Stream.from_handle(handle)


def synchronize(device: str) -> None:
    """Wait for the work on CuPy's current stream."""
    with use(device):
        cupy().cuda.get_current_stream().synchronize()


@cache
def loaded(device: str, text: str, name: str, threads: int, shared: int = 0) -> CudaKernel:
    """The kernel of a CUDA text on a device; kept for the life of the program."""
    return CudaKernel(
        device, compile_cubin(text, name, architecture(device)), name, threads, shared
    )
