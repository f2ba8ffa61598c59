"""Compile generated Python with Numba, and run range kernels on a pool of threads."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from lanewise.runtime.cache import cache_directory, content_key, write_once
from lanewise.runtime.devices import cpu_threads

RangeKernel = Callable[..., None]
SLAB_UNIT = (
    4096  # sites of one span at most: enough for SIMD loops, short enough to share the work; slabs are multiples
)


@cache
def load_kernel(text: str, name: str) -> RangeKernel:
    """The function `<name>_kernel` of a generated module. Numba keeps its machine code beside the module's file."""
    import numba

    _keep_compiler_over_forks()
    key = content_key(text, numba.__version__)
    path = cache_directory() / "cpu" / key / f"{name}.py"
    write_once(path, text.encode())
    module_name = f"lanewise_generated_{key}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module  # Numba looks the module up when it reads its cache
    spec.loader.exec_module(module)
    kernel: RangeKernel = getattr(module, f"{name}_kernel")
    return kernel


@cache
def _keep_compiler_over_forks() -> None:
    """A fork waits until no thread compiles: the child would find the compiler locked, half way through something, for ever."""
    from numba.core.compiler_lock import global_compiler_lock as lock

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def width_problem(bits: int) -> str | None:
    """Why kernels cannot use SIMD registers of so many bits here, or None; 0 leaves the choice to the compiler."""
    if not bits:
        return None
    from lanewise.runtime import vector_width

    return vector_width.problem(bits)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="lanewise")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork: the child makes its own


def guided_pieces(extent: int, threads: int, grain: int) -> list[tuple[int, int]]:
    """Ranges that cover 0..extent, large ones first.

    That is little dispatch, and all threads end together even when one core is slower than another.
    """
    pieces: list[tuple[int, int]] = []
    begin = 0
    while begin < extent:
        size = max(grain, (extent - begin) // (2 * threads))
        pieces.append((begin, min(begin + size, extent)))
        begin += size
    return pieces


def run_range(kernel: RangeKernel, arguments: tuple[Any, ...], extent: int, grain: int) -> None:
    """Run elements 0..extent on all threads, in pieces of at least `grain` elements.

    Elements are independent: the split changes no bits.
    """
    threads = cpu_threads()
    if threads == 1 or extent <= grain:
        kernel(*arguments, 0, extent)
        return
    pieces = iter(guided_pieces(extent, threads, grain))  # `next` of a list's iterator is atomic

    def work() -> None:
        for begin, end in pieces:
            kernel(*arguments, begin, end)

    others = [_pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        for other in others:
            other.result()


@dataclass(frozen=True, slots=True)
class Slabbed:
    """A kernel over a list of places, and where the part of each slab of them begins; the last entry is the end."""

    kernel: RangeKernel
    arguments: tuple[Any, ...]
    bounds: Sequence[int]


def run_slabs(work: Sequence[Slabbed]) -> None:
    """Run all kernels on one slab after the other: what one of them leaves in the caches the next one finds there.

    The kernels may run in any order, and slabs at the same time.
    """
    threads, slabs = cpu_threads(), len(work[0].bounds) - 1
    todo = iter(range(slabs))  # `next` of a range's iterator is atomic

    def run() -> None:
        for slab in todo:
            for w in work:
                begin, end = w.bounds[slab], w.bounds[slab + 1]
                if begin < end:
                    w.kernel(*w.arguments, begin, end)

    others = [_pool(threads - 1).submit(run) for _ in range(min(threads, slabs) - 1)]
    try:
        run()
    finally:
        for other in others:
            other.result()
