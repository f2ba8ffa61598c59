"""Prefix sums and a radix sort on one GPU, beside `cuda.compute` (NVIDIA's CCCL) and CuPy.

    python -m bench.gpu_primitives [--rounds 9]
Needs CuPy, an NVIDIA GPU, and the package `cuda-cccl` for the rows of `cuda.compute`. Every
version's result is compared with NumPy first. Versions take turns; times are medians of a call
that is waited for. The first calls are timed in a process of their own, with an empty cache and
with a filled one. Bounds: prefix sums read and write each element once; a sort of 32-bit keys
with 32-bit indices reads both and writes both in each of four passes, and reads the keys once
before. Writes bench/results/gpu_primitives.md, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.models.devices import device_model
from lanewise.primitives.radix_sort import BINS, PASSES, THREADS, pass_arguments, sort_text, tiles
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address

SIZES = (1_000, 1 << 20, 1 << 28)
SORTED = 1 << 20
ITEMS = 8  # keys of a thread: what searches take for so many

Call = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--first", choices=("lanewise", "cuda.compute"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        _first(given.first)
        return
    import cupy

    bandwidth = device_model("cuda").most_bandwidth
    rows: list[Measurement] = []
    for kind in (np.float32, np.int32):
        for count in SIZES:
            bound = bandwidth / 8
            rows += _measured(
                f"sum of {count} {kind.__name__}", _sums(count, kind), count, bound, given.rounds
            )
    passes = 4 + PASSES * 16
    rows += _measured(f"sort of {SORTED}", _sorts(SORTED), SORTED, bandwidth / passes, given.rounds)
    machine = describe_machine() | {"CuPy": cupy.__version__} | _first_calls()
    folder = Path(os.environ.get("OUT") or "bench/results")
    print(write_results(folder / "gpu_primitives.md", "Prefix sums and a sort", rows, machine))


def _measured(
    name: str, calls: dict[str, Call], count: int, bound: float, rounds: int
) -> list[Measurement]:
    import cupy

    def waited(call: Call) -> Callable[[], None]:
        def run() -> None:
            call()
            cupy.cuda.get_current_stream().synchronize()

        return run

    times = interleave({n: waited(c) for n, c in calls.items()}, rounds)
    return [
        Measurement(f"{name}, {n}", seconds, count, "elements", bound)
        for n, seconds in times.items()
    ]


def _sums(count: int, kind: Any) -> dict[str, Call]:
    import cupy

    # whole numbers whose prefix sums every type holds exactly
    host = np.random.default_rng(1).integers(-1, 2, count).astype(kind)
    values, out = cupy.asarray(host), cupy.empty(count, kind)
    calls: dict[str, Call] = {
        "lanewise": lambda: lw.cumsum(values, out=out),
        "CuPy": lambda: cupy.cumsum(values, out=out),
    }
    if (compute := _cuda_compute()) is not None:
        scan = compute.make_inclusive_scan(
            d_in=values, d_out=out, op=compute.OpKind.PLUS, init_value=None
        )
        asked = {"d_in": values, "d_out": out, "op": compute.OpKind.PLUS, "init_value": None}
        memory = cupy.empty(scan(temp_storage=None, num_items=count, **asked), np.uint8)
        calls["cuda.compute"] = lambda: scan(temp_storage=memory, num_items=count, **asked)
    wanted = np.cumsum(host, dtype=np.int64)
    for name, call in calls.items():
        out.fill(77)
        call()
        np.testing.assert_array_equal(out.get().astype(np.int64), wanted, err_msg=name)
    return calls


def _sorts(count: int) -> dict[str, Call]:
    import cupy

    host = np.random.default_rng(1).integers(0, 1 << 30, count, np.uint32)
    keys, order = cupy.asarray(host), cupy.arange(count, dtype=np.int32)
    sort, found = _radix_sort(keys)
    calls: dict[str, Call] = {"lanewise": sort}
    results: dict[str, Callable[[], Any]] = {"lanewise": lambda: found.view(np.int32)}
    kept: dict[str, Any] = {}

    def argsort() -> None:
        kept["order"] = cupy.argsort(keys, kind="stable")

    calls["CuPy"], results["CuPy"] = argsort, lambda: kept["order"]
    if (compute := _cuda_compute()) is not None:
        keys_out, order_out = cupy.empty_like(keys), cupy.empty_like(order)
        asked = {
            "d_in_keys": keys,
            "d_out_keys": keys_out,
            "d_in_values": order,
            "d_out_values": order_out,
        }
        radix = compute.make_radix_sort(order=compute.SortOrder.ASCENDING, **asked)
        memory = cupy.empty(radix(temp_storage=None, num_items=count, **asked), np.uint8)
        calls["cuda.compute"] = lambda: radix(temp_storage=memory, num_items=count, **asked)
        results["cuda.compute"] = lambda: order_out
    wanted = np.argsort(host, kind="stable")
    for name, call in calls.items():
        call()
        np.testing.assert_array_equal(results[name]().get(), wanted, err_msg=name)
    return calls


def _radix_sort(keys: Any) -> tuple[Call, Any]:
    """Our sort of a copy of the keys, its histogram included, and where the order lies."""
    import cupy

    count, blocks = len(keys), tiles(len(keys), ITEMS)
    kernel = get_device("cuda").load(sort_text(ITEMS), "curve_sort", THREADS)
    shapes = {"keys0": count, "keys1": count, "values0": count, "values1": count}
    memory = {n: cupy.empty(length, np.uint32) for n, length in shapes.items()}
    memory["status"] = cupy.empty(PASSES * blocks * BINS, np.uint32)
    memory["tickets"] = cupy.empty(PASSES, np.uint32)
    memory["histogram"] = cupy.empty(PASSES * BINS, np.uint32)
    digits = [cupy.bincount(keys >> 8 * n & 255, minlength=BINS) for n in range(PASSES)]
    counts = cupy.stack(digits).astype(np.uint32).ravel()
    at = {n: address(a) for n, a in memory.items()}

    def sort() -> None:
        memory["keys0"][...] = keys
        memory["histogram"][...] = counts
        memory["status"].fill(0)
        memory["tickets"].fill(0)
        for number in range(PASSES):
            kernel.launch((blocks, 1), pass_arguments(number, at, count, blocks))

    return sort, memory["values0"]


def _cuda_compute() -> Any:
    try:
        import cuda.compute as compute
    except ImportError:
        return None
    return compute


# ------------------------------------------------------------ first calls


def _first(which: str) -> None:
    import cupy

    values, out = cupy.ones(1_000, np.float32), cupy.empty(1_000, np.float32)
    cupy.cuda.get_current_stream().synchronize()
    begin = time.perf_counter()
    if which == "lanewise":
        lw.cumsum(values, out=out)
    else:
        import cuda.compute as compute

        compute.inclusive_scan(
            d_in=values, d_out=out, op=compute.OpKind.PLUS, init_value=None, num_items=1_000
        )
    cupy.cuda.get_current_stream().synchronize()
    print(f"{time.perf_counter() - begin:.3f} s")


def _first_calls() -> dict[str, str]:
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for which in ("lanewise", *(["cuda.compute"] if _cuda_compute() else [])):
            for state in ("empty", "filled"):
                done = subprocess.run(
                    [sys.executable, "-m", "bench.gpu_primitives", "--first", which],
                    env={**os.environ, "LANEWISE_CACHE": folder},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                last = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1:]
                found[f"first prefix sum of a process, {which}, {state} cache"] = "".join(last)
    return found


if __name__ == "__main__":
    main()
