"""Rows of one array to places of another one, on the same GPU or on one whose memory it reaches: one
kernel, which needs no memory between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, bring

THREADS = 256
_WORDS = {
    16: "uint4",
    8: "unsigned long long",
    4: "unsigned int",
    2: "unsigned short",
    1: "unsigned char",
}
TEXT = """// Row sources[i] of one array to row targets[i] of another one, in {count} words each.
extern "C" __global__ void __launch_bounds__({threads}) send_rows_kernel(
    const {word} *__restrict__ from, const long long *__restrict__ sources,
    {word} *__restrict__ to, const long long *__restrict__ targets, long long words)
{{
    const long long i = blockIdx.x * {threads}LL + threadIdx.x;
    if (i >= words) return;
    const long long row = i / {count}, word = i % {count};
    to[targets[row] * {count} + word] = from[sources[row] * {count} + word];
}}
"""


@dataclass(frozen=True, slots=True, eq=False)
class Sender:
    """A launch that is bound. held: arrays whose addresses it has."""

    kernel: Any
    grid: tuple[int, int]
    arguments: tuple[Any, ...]
    held: tuple[Any, ...]

    def __call__(self) -> None:
        self.kernel.launch(self.grid, self.arguments)


def text_of(row: int, places: tuple[int, ...]) -> tuple[int, str]:
    """The kernel for rows of so many bytes in memory that begins there, and the bytes of a word."""
    size = next(n for n in _WORDS if not row % n and not any(p % n for p in places))
    return size, TEXT.format(threads=THREADS, word=_WORDS[size], count=row // size)


def sender(device: str, rows: Any, sources: Any, to: Any, targets: Any) -> Sender:
    """What puts the copies on the stream of `device`, where `rows` lie. rows, to: arrays of one or
    two axes; sources, targets: numbers of rows, int64.
    """
    row = int(rows.itemsize * np.prod(rows.shape[1:], dtype=int))
    places = address(rows), address(to)
    size, text = text_of(row, places)
    kernel = get_device(device).load(text, "send_rows", THREADS)
    here = bring(sources, device), bring(targets, device)
    words = len(here[0]) * row // size
    arguments = places[0], address(here[0]), places[1], address(here[1]), np.int64(words)
    return Sender(kernel, (-(-words // THREADS), 1), arguments, (rows, to, here))
