"""Compile generated Python with Numba, and run range kernels on a pool of threads."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import Any

from lanewise.runtime.cache import cache_directory, content_key, write_once
from lanewise.runtime.devices import cpu_threads

RangeKernel = Callable[..., None]
CHUNKS_PER_THREAD = 4  # enough to even out threads of unequal speed, few enough to cost nothing


@cache
def load_kernel(text: str, name: str) -> RangeKernel:
    """The function `<name>_kernel` of a generated module. Numba keeps its machine code beside the module's file."""
    import numba

    key = content_key(text, numba.__version__)
    path = cache_directory() / "cpu" / key / f"{name}.py"
    write_once(path, text.encode())
    module_name = f"lanewise_generated_{key}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None and spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # Numba looks the module up when it reads its cache
    spec.loader.exec_module(module)
    kernel: RangeKernel = getattr(module, f"{name}_kernel")
    return kernel


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="lanewise")


def run_range(kernel: RangeKernel, arguments: tuple[Any, ...], extent: int, grain: int) -> None:
    """Run elements 0..extent on all threads, in pieces of at least `grain` elements. Elements are independent: the split changes no bits."""
    threads = cpu_threads()
    pieces = min(threads * CHUNKS_PER_THREAD, extent // max(grain, 1)) if threads > 1 else 1
    if pieces < 2:
        kernel(*arguments, 0, extent)
        return
    size = -(-extent // pieces)
    starts = range(size, extent, size)
    futures = [_pool(threads).submit(kernel, *arguments, begin, min(begin + size, extent)) for begin in starts]
    kernel(*arguments, 0, size)  # this thread takes the first piece
    for future in futures:
        future.result()
