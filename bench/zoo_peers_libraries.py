"""How `bench.zoo_peers` calls other libraries: each as its users do, on arrays of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bench.zoo_peers_kernels import Problem, Text
from bench.zoo_peers_naive import NUMBA, TAICHI, WARP, module_of, spelled
from tests.zoo.generate import Array

# Read when the libraries are imported: memory for one kernel at a time, compilers in one process.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
os.environ.setdefault("NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS", "0")

Host = dict[str, Array]
Grid = tuple[int, ...]
Turn = AbstractContextManager[Any]
BLOCKS = {1: (256,), 2: (32, 8), 3: (32, 8, 1)}  # of Numba's threads, the last index first


@dataclass(frozen=True, slots=True)
class Ready:
    """A call with its arrays.

    Attributes:
        call: launches it.
        wait: of its result, until that is there, where the library has to; the device is waited for
        besides.
        written: what it writes, where it has no result.
    """

    call: Callable[[], Any]
    wait: Callable[[Any], Any] = lambda result: None
    written: Any = None

    def __call__(self) -> Any:
        return self.call()

    def result(self) -> Any:
        """What it computes, on the host: an array, or a tuple of columns."""
        result = self.call()
        self.wait(result)
        if self.written is not None:
            result = self.written
        return tuple(map(numpy_of, result)) if isinstance(result, tuple) else numpy_of(result)


@dataclass(frozen=True, slots=True)
class Peer:
    """A library.

    Attributes:
        begin: of a kernel, a device and what is held while that is used alone: a function of host
        arrays and a grid that gives the call.
        devices: on which it is a peer.
        shaped: whether it compiles, or chooses algorithms, for lengths of arrays.
        tunes: whether it tries several algorithms of that kernel at its first call.
    """

    begin: Callable[[Problem, str, Turn], Callable[[Host, Grid], Ready]]
    devices: tuple[str, ...] = ("cpu", "cuda")
    shaped: bool = False
    tunes: Callable[[Problem], bool] = lambda problem: False


def numpy_of(array: Any) -> Array:
    """An array of any library on the host."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
    elif hasattr(array, "get"):
        array = array.get()
    return np.asarray(array)


def on_host(host: Host) -> Host:
    """Arrays of its own, to write into."""
    return {n: a.copy() for n, a in host.items()}


def _numpy(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del device, turn
    return lambda host, grid: Ready(partial(problem.numpy, np, *problem.read(host)))


# ---------------------------------------------------------------- libraries of arrays


def _tensors(problem: Problem, host: Host, device: str) -> tuple[Any, list[Any]]:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True  # as for shapes that come again
    torch.set_grad_enabled(False)
    return torch, [torch.from_numpy(a).to(device) for a in problem.read(host)]


def _torch(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del turn

    def of(host: Host, grid: Grid) -> Ready:
        del grid
        torch, tensors = _tensors(problem, host, device)
        return Ready(partial(problem.torch, torch, *tensors))

    return of


def _compiled(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    import torch

    if device != "cpu":
        _try_alone(turn)
    text: Text = problem.compiled or problem.torch

    def run(*arrays: Any) -> Any:
        return text(torch, *arrays)

    compiled = torch.compile(run, dynamic=False)

    def of(host: Host, grid: Grid) -> Ready:
        del grid
        return Ready(partial(compiled, *_tensors(problem, host, device)[1]))

    return of


def _try_alone(turn: Turn) -> None:
    """What torch.compile tries has the device for itself; compiling needs none."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner

    tried: Any = CachingAutotuner.benchmark_all_configs

    def alone(self: Any, *given: Any, **named: Any) -> Any:
        with turn:
            return tried(self, *given, **named)

    CachingAutotuner.benchmark_all_configs = alone


def _cupy(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del device, turn
    import cupy
    import cupyx.scipy
    import cupyx.scipy.ndimage
    import cupyx.scipy.signal

    text = (
        partial(problem.cupy, cupy, cupyx.scipy) if problem.cupy else partial(problem.numpy, cupy)
    )

    def of(host: Host, grid: Grid) -> Ready:
        del grid
        return Ready(partial(text, *map(cupy.asarray, problem.read(host))))

    return of


def _jax(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del turn
    import jax

    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    elif jax.default_backend() != "gpu":
        raise RuntimeError(f"JAX has no GPU here: {jax.default_backend()}")
    jax.config.update("jax_default_matmul_precision", "highest")
    compiled = jax.jit(
        partial(problem.jax, jax) if problem.jax else partial(problem.numpy, jax.numpy)
    )

    def of(host: Host, grid: Grid) -> Ready:
        del grid
        arrays = [jax.device_put(a) for a in problem.read(host)]
        return Ready(partial(compiled, *arrays), jax.block_until_ready)

    return of


def _keops(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del turn
    text = problem.keops
    if text is None:
        raise NotImplementedError("no reduction over pairs")
    from pykeops.torch import LazyTensor

    def of(host: Host, grid: Grid) -> Ready:
        del grid
        _, tensors = _tensors(problem, host, device)
        return Ready(partial(text, LazyTensor, *tensors))

    return of


# ---------------------------------------------------------------- languages of kernels


def _numba(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del device, turn
    from numba import cuda

    kernel = module_of(spelled(problem.case.text, NUMBA), "by_numba").kernel

    def of(host: Host, grid: Grid) -> Ready:
        arrays = {n: cuda.to_device(a) for n, a in host.items()}
        threads = BLOCKS[len(grid)]
        blocks = tuple(-(-n // t) for n, t in zip(reversed(grid), threads, strict=True))
        launch = kernel[blocks, threads]
        call = partial(launch, *arrays.values(), *grid)
        return Ready(call, written=_Copied(arrays[problem.case.written]))

    return of


@dataclass(frozen=True, slots=True)
class _Copied:
    """An array of Numba's or Warp's, which copy to the host by methods of other names."""

    array: Any

    def get(self) -> Array:
        return (
            self.array.copy_to_host() if hasattr(self.array, "copy_to_host") else self.array.numpy()
        )


def _warp(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del turn
    import warp

    warp.config.quiet = True
    kernel = module_of(spelled(problem.case.text, WARP), "by_warp").kernel
    where = "cpu" if device == "cpu" else "cuda:0"

    def of(host: Host, grid: Grid) -> Ready:
        arrays = {n: warp.array(a, device=where) for n, a in host.items()}
        launch = warp.launch(
            kernel, dim=grid, inputs=list(arrays.values()), device=where, record_cmd=True
        )
        written = _Copied(arrays[problem.case.written])
        return Ready(launch.launch, lambda _: warp.synchronize_device(where), written)

    return of


def _taichi(problem: Problem, device: str, turn: Turn) -> Callable[[Host, Grid], Ready]:
    del turn
    import taichi

    taichi.init(
        arch=taichi.cpu if device == "cpu" else taichi.cuda, log_level=taichi.WARN, fast_math=False
    )
    kernel = module_of(spelled(problem.case.text, TAICHI), "by_taichi").kernel

    def of(host: Host, grid: Grid) -> Ready:
        arrays: dict[str, Any] = on_host(host)
        if device != "cpu":
            import torch

            arrays = {n: torch.from_numpy(a).to(device) for n, a in host.items()}
        call = partial(kernel, *arrays.values(), *grid)
        return Ready(call, lambda _: taichi.sync(), arrays[problem.case.written])

    return of


PEERS = {
    "NumPy": Peer(_numpy, devices=("cpu",)),
    "PyTorch": Peer(_torch, shaped=True, tunes=lambda problem: True),
    "torch.compile": Peer(_compiled, shaped=True),
    "CuPy": Peer(_cupy, devices=("cuda",)),
    "JAX": Peer(_jax, shaped=True, tunes=lambda problem: problem.tuned),
    "KeOps": Peer(_keops),
    "Numba": Peer(_numba, devices=("cuda",)),
    "Warp": Peer(_warp),
    "Taichi": Peer(_taichi),
}
