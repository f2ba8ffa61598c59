"""Whether memory differs from what it was, and whether all counts have come so far.

A GPU compares by one kernel, and by another one looks at the counts and remembers; the host reads
their answers in its own memory.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.language.target import target_of
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, on

THREADS = 256
_WORDS = {8: "unsigned long long", 4: "unsigned int", 2: "unsigned short", 1: "unsigned char"}
_DIFFER = """// Whether any word differs from what was remembered.
extern "C" __global__ void __launch_bounds__({threads}) differ_kernel(
    const {word} *__restrict__ now, const {word} *__restrict__ before, long long words, unsigned *__restrict__ differ)
{{
    const long long i = blockIdx.x * {threads}LL + threadIdx.x;
    if (i < words && now[i] != before[i]) *differ = 1;
}}
"""
_SETTLE = """// Remember every word; whether any body has not ended all steps with finite coordinates.
extern "C" __global__ void __launch_bounds__({threads}) settle_kernel(
    const {word} *__restrict__ now, {word} *__restrict__ before, long long words,
    const int *__restrict__ counts, int bodies, int steps, unsigned *__restrict__ lost)
{{
    const long long i = blockIdx.x * {threads}LL + threadIdx.x;
    if (i < words) before[i] = now[i];
    if (i < bodies && counts[i] < steps) *lost = 1;
}}
"""


class Remembered(Protocol):
    """A copy of bytes, and counts that a kernel adds to, on their device."""

    def changed(self) -> bool:
        """Whether any byte differs from what was remembered."""
        ...

    def settle(self, steps: int) -> bool:
        """Remember the bytes as they are; whether all counts have come to that many steps."""
        ...


def remembered(data: Any, counts: Any, device: str) -> Remembered:
    """The bytes of `data` as they are now, (nbytes,) of uint8 on a device, and counts (n,) of
    int32.
    """
    if not counts.size:
        return _Nothing()
    size = next(n for n in _WORDS if data.nbytes % n == 0)
    words = data.view(np.dtype(f"u{size}"))
    return (
        _OnHost(words, counts) if target_of(device).host_memory else _OnGpu(words, counts, device)
    )


class _Nothing:
    """No counts: there is nothing that could change, and none is behind."""

    __slots__ = ()

    def changed(self) -> bool:
        return False

    def settle(self, steps: int) -> bool:
        del steps
        return True


class _OnHost:
    __slots__ = ("_copy", "_counts", "_words")

    def __init__(self, words: NDArray[Any], counts: NDArray[np.int32]) -> None:
        self._words, self._copy, self._counts = words, words.copy(), counts

    def changed(self) -> bool:
        return not np.array_equal(self._copy, self._words)

    def settle(self, steps: int) -> bool:
        self._copy[...] = self._words
        return int(self._counts.min()) >= steps


class _OnGpu:
    __slots__ = (
        "_answers",
        "_arrays",
        "_device",
        "_differ",
        "_first",
        "_grid",
        "_remembered",
        "_settle",
        "_settling",
    )

    def __init__(self, words: Any, counts: Any, device: str) -> None:
        self._device = get_device(device)
        with on(device):
            copy = words.copy()
            self._answers = self._device.pinned(8, "a look for changes").view(np.uint32)
        self._arrays = (words, copy, counts)  # whose addresses are given below
        self._answers[:] = 0
        word, self._first = _WORDS[words.dtype.itemsize], address(self._answers)
        self._differ = self._device.load(
            _DIFFER.format(threads=THREADS, word=word), "differ", THREADS
        )
        self._settle = self._device.load(
            _SETTLE.format(threads=THREADS, word=word), "settle", THREADS
        )
        self._grid = (-(-max(words.size, counts.size) // THREADS), 1)
        self._remembered = (address(words), address(copy), np.int64(words.size))
        self._settling = (address(counts), np.int32(counts.size)), self._first + 4

    def changed(self) -> bool:
        self._differ.launch(self._grid, (*self._remembered, self._first))
        return self._answer(0)

    def settle(self, steps: int) -> bool:
        counts, lost = self._settling
        self._settle.launch(self._grid, (*self._remembered, *counts, np.int32(steps), lost))
        return not self._answer(1)

    def _answer(self, number: int) -> bool:
        self._device.synchronize()
        answer = bool(self._answers[number])
        self._answers[number] = 0
        return answer
