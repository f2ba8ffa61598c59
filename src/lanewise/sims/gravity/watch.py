"""What nobody tells a simulation: that its bodies were written to between steps, and that one of them left the finite numbers.

Both are looked at once for each call that takes steps, however short that is. So on a GPU one kernel compares before it, and one looks
and remembers after it; the host reads their answers in its own memory.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime import cuda
from lanewise.runtime.cuda import loaded
from lanewise.runtime.memory import address
from lanewise.sims.common.devices import array_module, is_gpu
from lanewise.support.errors import InputError

THREADS = 256
MOST_COUNTED = 1 << 30  # steps: counts have 32 bits
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


class Memory(Protocol):
    """A copy of the bytes of the bodies, and how many steps each of them has ended with finite coordinates, on their device."""

    def changed(self) -> bool:
        """Whether any byte of the bodies differs from what was remembered."""
        ...

    def settle(self, steps: int) -> bool:
        """Remember the bodies as they are; whether all of them have ended that many steps."""
        ...


class Watch:
    """Watches over the bodies of one simulation.

    `counts` is int32 of shape (n,) on the device, of steps since `restart`; the kernel `kick` of `physics` counts.
    """

    __slots__ = ("_begin", "_memory", "_module", "counts")

    def __init__(self, data: Any, count: int, device: str, step: int) -> None:
        """`data`: (nbytes,) uint8, as `RecordArray.data`; `step`: the one before those that will be counted."""
        self._module = array_module(device)
        self.counts: Any = self._module.zeros(count, np.int32)
        self._begin = step
        size = next(n for n in _WORDS if data.nbytes % n == 0)
        words = data.view(np.dtype(f"u{size}"))
        self._memory: Memory = _Nothing()
        if count:
            self._memory = _OnGpu(words, self.counts, device) if is_gpu(device) else _OnHost(words, self.counts)

    def changed(self) -> bool:
        """Whether somebody has written to the bodies since `settle`."""
        return self._memory.changed()

    def restart(self, step: int) -> None:
        """Count anew, after this step, and remember the bodies as they are."""
        self._module.copyto(self.counts, 0)
        self._begin = step
        self._memory.settle(0)

    def settle(self, step: int) -> None:
        """Remember the bodies as they are after this step. Raises `InputError` when one of them has left the finite numbers.

        The smallest count tells the step that broke, and its place the body.
        """
        if self._memory.settle(step - self._begin):
            if step - self._begin > MOST_COUNTED:
                self.restart(step)
            return
        survived, body = int(self._module.min(self.counts)), int(self._module.argmin(self.counts))
        raise InputError(
            f"step {self._begin + survived + 1}: body {body} has no finite position or velocity any more; "
            "a smaller dt or more softening keeps close encounters finite; lengths below 1e-12 need precision f64 "
            "or another unit of length"
        )


class _Nothing:
    """No bodies at all: nobody can write to them, and none leaves the finite numbers."""

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
    __slots__ = ("_answers", "_arrays", "_device", "_differ", "_grid", "_pinned", "_remembered", "_settle", "_settling")

    def __init__(self, words: Any, counts: Any, device: str) -> None:
        self._device = device
        with cuda.use(device):
            copy = words.copy()
            self._pinned = cuda.cupy().cuda.alloc_pinned_memory(8)
        self._arrays = (words, copy, counts)  # whose addresses are given below
        self._answers = np.frombuffer(self._pinned, np.uint32, 2)
        self._answers[:] = 0
        word, first = _WORDS[words.dtype.itemsize], int(self._pinned.ptr)
        self._differ = loaded(device, _DIFFER.format(threads=THREADS, word=word), "differ", THREADS)
        self._settle = loaded(device, _SETTLE.format(threads=THREADS, word=word), "settle", THREADS)
        self._grid = (-(-max(words.size, counts.size) // THREADS), 1)
        self._remembered = (address(words), address(copy), np.int64(words.size))
        self._settling = (address(counts), np.int32(counts.size)), first + 4

    def changed(self) -> bool:
        self._differ.launch(self._grid, (*self._remembered, int(self._pinned.ptr)))
        return self._answer(0)

    def settle(self, steps: int) -> bool:
        counts, lost = self._settling
        self._settle.launch(self._grid, (*self._remembered, *counts, np.int32(steps), lost))
        return not self._answer(1)

    def _answer(self, number: int) -> bool:
        cuda.synchronize(self._device)
        answer = bool(self._answers[number])
        self._answers[number] = 0
        return answer
