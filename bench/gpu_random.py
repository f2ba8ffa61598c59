"""How fast are random numbers stored on a GPU? Beside PyTorch's and CuPy's generators of the same
kind, and a copy.

`python -m bench.gpu_random [--numbers 268435456]` writes bench/results/gpu_random.{md,json}, or
into the folder that the variable OUT names. Every number is Philox4x32-10 of a seed, a step and its
place; what lanewise stores is compared first with the functions of NumPy that define it, to the
bit, at places over the whole array. Bytes are those that are written; the bound is what a copy
moves, which reads as many as it writes. All versions go in turn; times are medians by events.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, write_results
from lanewise.runtime import cuda
from lanewise.runtime.device import get_device
from lanewise.runtime.programs import repeat

ROUNDS, CALLS, CHECKED, SEED = 15, 5, 10_000, 11


@lw.record
class Four:
    """What one counter of Philox gives."""

    value: lw.vec4


@lw.elementwise
def uniform(four: Four, step: lw.i32):
    four.value = lw.random4(SEED, step, lw.index_of(four))


@lw.elementwise
def normal(four: Four, step: lw.i32):
    four.value = lw.normal4(SEED, step, lw.index_of(four))


@lw.threadwise
def each(i: lw.index, step: lw.i32, numbers: lw.Array1[lw.f32]):
    numbers[i] = lw.random(SEED, step, i)


def checked(name: str, stored: Any, wanted: Callable[[Any], Any]) -> None:
    """Raise ValueError where stored numbers are not those that define them."""
    places = np.unique(np.linspace(0, len(stored) - 1, CHECKED).astype(np.int32))
    if (
        cuda.cupy().asnumpy(stored[cuda.cupy().asarray(places)]).tobytes()
        != np.asarray(wanted(places), np.float32).tobytes()
    ):
        raise ValueError(f"{name}: other numbers than NumPy's")


def versions(numbers: int) -> dict[str, Callable[[], Any]]:
    """What is timed, checked."""
    cp: Any = cuda.cupy()
    count, step = numbers // 4, 3
    made: dict[str, Callable[[], Any]] = {}
    for layout in (lw.AoS(), lw.SoA()):
        fours = Four.zeros(count, layout=layout, device="cuda")
        for kernel, reference in ((uniform, lw.random4), (normal, lw.normal4)):
            call = kernel.bind(fours, step)
            call()
            checked(kernel.__name__, fours.value, partial(reference, SEED, step))
            made[f"lanewise, {kernel.__name__}, four of a counter, {layout}"] = call.launch
    single = cp.zeros(numbers, cp.float32)
    one = each.bind(step, single, grid=(numbers,))
    one()
    checked("each", single, partial(lw.random, SEED, step))
    made["lanewise, uniform, one of a counter"] = one.launch
    made["a copy"] = lambda: cp.copyto(single[: numbers // 2], single[numbers // 2 :])
    generator = cp.random.Generator(cp.random.Philox4x3210(SEED))
    made["CuPy, uniform, Philox"] = lambda: generator.random(numbers, dtype=cp.float32)
    try:
        import torch
    except ImportError:
        return made
    out = torch.empty(numbers, device="cuda")
    made["PyTorch, uniform"] = out.uniform_
    made["PyTorch, normal"] = out.normal_
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--numbers", type=int, default=2**28)
    numbers = parser.parse_args().numbers
    made = versions(numbers)
    timer = get_device("cuda").seconds
    times: dict[str, list[float]] = {name: [] for name in made}
    for turn in range(ROUNDS + 1):
        for name, run in list(made.items())[:: -1 if turn % 2 else 1]:
            seconds = timer(partial(repeat, [run], CALLS)) / CALLS
            if turn:
                times[name].append(seconds)
    copy = 4 * numbers / statistics.median(times["a copy"])
    rows = [
        Measurement(name, seconds, 4.0 * numbers, "bytes", copy) for name, seconds in times.items()
    ]
    title = (
        f"Random numbers stored on a GPU: {numbers:,} of float32, bytes written a second; the "
        "bound is what a copy moves"
    )
    print(
        write_results(
            Path(os.environ.get("OUT") or "bench/results") / "gpu_random.md",
            title,
            rows,
            describe_machine(),
        )
    )


if __name__ == "__main__":
    main()
