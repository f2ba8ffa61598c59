"""Keys sorted by radix, on every device: the order of NumPy's stable sort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from lanewise.primitives import radix_sort
from lanewise.primitives.radix_sort import BINS, PASSES, THREADS, pass_arguments, sort_text, tiles
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, bring, to_host
from tests.search import emulated_cuda

ITEMS = 2
Sort = Callable[[np.ndarray[Any, np.dtype[np.uint32]]], Any]


def on_host(keys: Any) -> Any:
    order, other = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    radix_sort.on_host(keys.copy(), np.empty_like(keys), order, other)
    return order


def passes(keys: Any, bring: Callable[[Any], Any], launch: Callable[[int, tuple[Any, ...]], None]) -> Any:
    """The order by the kernel, whose memory `bring` makes and whose blocks and arguments `launch` is given."""
    count, blocks = len(keys), tiles(len(keys), ITEMS)
    digits = np.stack([np.bincount(keys >> 8 * n & 255, minlength=BINS) for n in range(PASSES)])
    shapes = {"keys1": count, "values0": count, "values1": count, "status": PASSES * blocks * BINS, "tickets": PASSES}
    host = {n: np.zeros(length, np.uint32) for n, length in shapes.items()}
    memory: Mapping[str, Any] = {
        n: bring(a) for n, a in {**host, "keys0": keys.copy(), "histogram": digits.astype(np.uint32)}.items()
    }
    at = {n: address(a) for n, a in memory.items()}
    for number in range(PASSES):
        launch(blocks, pass_arguments(number, at, count, blocks))
    return to_host(memory["values0"]).view(np.int32)


def emulated(keys: Any) -> Any:
    def launch(blocks: int, arguments: tuple[Any, ...]) -> None:
        emulated_cuda.launch(sort_text(ITEMS), "curve_sort", blocks, THREADS, *arguments)

    return passes(keys, np.asarray, launch)


def on_gpu(keys: Any) -> Any:
    kernel = get_device("cuda").load(sort_text(ITEMS), "curve_sort", THREADS)
    return passes(keys, lambda a: bring(a, "cuda"), lambda blocks, given: kernel.launch((blocks, 1), given))


@pytest.mark.grid(every=40)
@pytest.mark.parametrize(
    "sort",
    [
        on_host,
        pytest.param(
            emulated, id="emulated", marks=pytest.mark.skipif(emulated_cuda.COMPILER is None, reason="no g++")
        ),
        pytest.param(on_gpu, id="gpu", marks=pytest.mark.cuda),
    ],
)
@pytest.mark.parametrize("count", [1, 31, 1025, 1500])
def test_the_order_is_that_of_a_stable_sort(sort: Sort, count: int) -> None:
    rng = np.random.default_rng(count)
    for keys in (
        rng.integers(0, 1 << 30, count, np.uint32),  # all digits of both
        rng.integers(0, 3, count, np.uint32) * np.uint32(0x10000401),  # most are equal
        np.full(count, (1 << 30) - 1, np.uint32),
        np.arange(count, dtype=np.uint32)[::-1].copy(),
    ):
        np.testing.assert_array_equal(sort(keys), np.argsort(keys, kind="stable"))
