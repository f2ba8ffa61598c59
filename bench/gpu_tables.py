"""Gathers from tables beside the copy of the same bytes, on one GPU: `python -m bench.gpu_tables`.

Each element reads a float32 and an index or a coordinate, and writes a float32. The calls take
turns, round after round, and the least time of each counts. Tables have 1,024 and 1,000,000
elements; the indices are in random order, in order, or the coordinates of an interpolation.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from typing import Any

import numpy as np

import lanewise as lw


@lw.elementwise
def copied(n: lw.i32, x: lw.f32) -> lw.f32:
    return x + lw.f32(n)


@lw.elementwise
def looked_up(n: lw.i32, x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return x + t[n]


@lw.elementwise
def between(n: lw.f32, x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return x + lw.interpolate(t, n)


@lw.elementwise
def drawn(n: lw.i32, x: lw.f32, t: lw.Array1[lw.f32]) -> lw.f32:
    return x + t[(lw.index_of(n) >> 8) & 1023] * lw.f32(n)


def least(calls: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Milliseconds of each call, the least of some rounds in which all take turns."""
    import cupy

    first, last = cupy.cuda.Event(), cupy.cuda.Event()
    times: dict[str, float] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            first.record()
            call()
            last.record()
            last.synchronize()
            ms = float(cupy.cuda.get_elapsed_time(first, last))
            times[name] = min(ms, times.get(name, ms))
    return times


def measure(count: int, rounds: int) -> dict[str, Any]:
    """The times of all kernels, and of a copy of as many bytes by the driver."""
    import cupy

    rng = cupy.random.default_rng(0)
    x, out = rng.random(count, dtype=np.float32), cupy.empty(count, np.float32)
    # 12 bytes an element, half of them read
    source, target = (
        cupy.empty(count * 6, np.uint8),
        cupy.empty(count * 6, np.uint8),
    )
    calls: dict[str, Callable[[], object]] = {"copy": lambda: cupy.copyto(target, source)}
    for size in (1024, 1_000_000):
        t = rng.random(size, dtype=np.float32)
        random = rng.integers(0, size, count, dtype=np.int32)
        ordered = (cupy.arange(count, dtype=np.int64) * size // count).astype(np.int32)
        places = rng.random(count, dtype=np.float32) * np.float32(size)
        calls[f"no table, {size:,}"] = copied.bind(random, x, out=out)
        calls[f"{size:,} in order"] = looked_up.bind(ordered, x, t, out=out)
        calls[f"{size:,} at random"] = looked_up.bind(random, x, t, out=out)
        calls[f"{size:,} interpolated"] = between.bind(places, x, t, out=out)
        if size == 1024:
            calls[f"{size:,} by index_of"] = drawn.bind(random, x, t, out=out)
    for call in calls.values():
        call()
    times = least(calls, rounds)
    return {
        n: {"ms": ms, "GB/s": 12 * count / ms / 1e6, "of the copy": times["copy"] / ms}
        for n, ms in times.items()
    }


def main() -> None:
    """Print a table, and the numbers as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    result = measure(arguments.count, arguments.rounds)
    for name, row in result.items():
        print(
            f"{name:24} {row['ms']:8.3f} ms {row['GB/s']:8.0f} GB/s {row['of the copy']:6.2f} of "
            "the copy"
        )
    print(json.dumps(result))


if __name__ == "__main__":
    main()
