"""One look at positions on a GPU: which ones no search can use, and where some of them are.

A kernel, a transfer, nothing else.

A call of a query asks that of all its positions before anything is built; asked array by array it
would take longer than the search.

How the text of a CUDA kernel reads a coordinate of an element, in any layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.language.types import Scalar, component
from lanewise.layouts import Arrangement
from lanewise.runtime.cuda_spelling import TYPES
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address, allocate, array_module, on, to_host

# positions that say where all of them are, well enough to choose a structure and the box of a grid
SAMPLE = 4096
GOLDEN_SECTION = 0.6180339887498949
# from 0 to 1, with nearly the same gaps, and no period
_STEPS = np.sort(np.arange(SAMPLE) * GOLDEN_SECTION % 1)
THREADS = 256
NONE = 0xFFFFFFFF  # instead of an element, where there is none: more than any index
_HEAD = 16  # bytes of the result before the sample

_TEXT = """// The first position that is not finite and the first outside the bounds; some of the positions, side by side.
typedef {kind} T;
extern "C" __global__ void __launch_bounds__({threads}) survey_kernel(
    {columns}, int n, const int *__restrict__ places, int samples,
    {bounds}, unsigned *__restrict__ first, T *__restrict__ sample)
{{
    const int i = blockIdx.x * {threads} + threadIdx.x;
    if (i < samples) {{
        const int at = places ? places[i] : i;
{takes}
    }}
    if (i >= n) return;
{reads}
    if (!({finite})) atomicMin(first, (unsigned)i);
    if ({outside}) atomicMin(first + 1, (unsigned)i);
}}
"""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What was seen. unsound, outside: the first element that is not finite, and the first beyond
    the bounds, or None.

    sample: shape (samples, axes), on the host.
    """

    unsound: int | None
    outside: int | None
    sample: NDArray[Any]


ANSWER_THREADS = 32
ANSWER = """// Tell the host that one more look is over, and whether it found a position that cannot be used.
extern "C" __global__ void __launch_bounds__(32) look_answer_kernel(
    unsigned *__restrict__ first, unsigned *__restrict__ looks, volatile unsigned *answer)
{
    if (threadIdx.x) return;
    const unsigned number = *looks + 1;
    const unsigned unsound = first[0] != 0xffffffffu || first[1] != 0xffffffffu;
    *looks = number;
    first[0] = first[1] = 0xffffffffu;
    __threadfence_system();
    *answer = number << 1 | unsound;
}
"""


@lru_cache(maxsize=16)
def sampled(count: int) -> NDArray[np.int64] | None:
    """Which of `count` elements the sample has: evenly from all, but in no step with what repeats
    in them. None: all of them.
    """
    if count <= SAMPLE:
        return None
    places = (_STEPS * count).astype(np.int64)
    return places[np.diff(places, prepend=-1) > 0]  # each of them once


@cache
def survey_text(arrangement: Arrangement, leaves: tuple[str, ...], precision: Scalar) -> str:
    """The CUDA text of the kernel, for positions in this arrangement."""
    names = [component(axis) for axis in range(len(leaves))]

    def read(axis: int, index: str) -> str:
        return coordinate_text(arrangement, leaves[axis], names[axis], index)

    return _TEXT.format(
        kind=TYPES[precision],
        threads=THREADS,
        columns=", ".join(f"const char *__restrict__ {c}" for c in names),
        bounds=", ".join(f"T low_{c}, T high_{c}" for c in names),
        takes="\n".join(
            f"        sample[i * {len(leaves)} + {m}] = {read(m, 'at')};"
            for m in range(len(leaves))
        ),
        reads="\n".join(f"    const T v{c} = {read(m, 'i')};" for m, c in enumerate(names)),
        # infinities and what is no number: their difference is none
        finite=" && ".join(f"v{c} - v{c} == 0" for c in names),
        outside=" || ".join(f"v{c} < low_{c} || v{c} > high_{c}" for c in names),
    )


def survey(
    device: str,
    text: str,
    columns: Sequence[int],
    count: int,
    kind: np.dtype[Any],
    bounds: Sequence[tuple[float, float]],
) -> Survey:
    """Look at the positions of `count` elements on a GPU, and wait for what is seen.

    text: the kernel for their arrangement. columns: the addresses of the coordinates of the first
    one. bounds: the lowest and the highest coordinate along every axis.
    """
    places = sampled(count)
    samples = count if places is None else len(places)
    result = allocate(
        device, _HEAD + samples * len(columns) * kind.itemsize, "a look at positions", zeroed=False
    )
    kernel, here = get_device(device).load(text, "survey", THREADS), address(result)
    listed = 0 if places is None else address(_on_device(device, count))
    values = _typed(bounds, kind.type)
    with on(device):
        result.data.memset_async(0xFF, _HEAD)
        kernel.launch(
            (-(-count // THREADS), 1),
            (*columns, np.int32(count), listed, np.int32(samples), *values, here, here + _HEAD),
        )
        return _read(to_host(result), len(columns), kind)


def survey_launch(
    device: str,
    text: str,
    columns: Sequence[int],
    count: int,
    kind: np.dtype[Any],
    bounds: Sequence[tuple[float, float]],
    first: int,
) -> None:
    """The same look without a sample and without a wait. first: the address of two uint32 that take
    the elements; they begin as `NONE`.
    """
    kernel = get_device(device).load(text, "survey", THREADS)
    nowhere = 0
    kernel.launch(
        (-(-count // THREADS), 1),
        (
            *columns,
            np.int32(count),
            nowhere,
            np.int32(0),
            *_typed(bounds, kind.type),
            first,
            nowhere,
        ),
    )


def _typed(bounds: Sequence[tuple[float, float]], kind: Any) -> tuple[Any, ...]:
    with np.errstate(over="ignore"):  # bounds beyond the type bound nothing
        return tuple(kind(x) for ends in bounds for x in ends)


def _read(raw: NDArray[np.uint8], axes: int, kind: np.dtype[Any]) -> Survey:
    unsound, outside = (None if x == NONE else int(x) for x in raw[:8].view(np.uint32))
    return Survey(unsound, outside, raw[_HEAD:].view(kind).reshape(-1, axes))


@lru_cache(maxsize=16)  # of 16 KiB each
def _on_device(device: str, count: int) -> Any:
    """The numbers of the sampled elements in the memory of a GPU."""
    with on(device):
        return array_module(device).asarray(sampled(count), "int32")


def coordinate_text(arrangement: Arrangement, leaf: str, column: str, index: str) -> str:
    """The expression for a coordinate of type T of element `index`; `column` points at that of the
    first element, as bytes.
    """
    slot = arrangement.slot(leaf)
    buffer = arrangement.buffers[slot.buffer]
    place = f"(size_t){index} * {buffer.block}"
    if buffer.width > 1:
        place = (
            f"(size_t)({index} / {buffer.width}) * {buffer.block} + {index} % {buffer.width} * "
            f"{slot.stride}"
        )
    return f"*(const T *)({column} + {place})"
