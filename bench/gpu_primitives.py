"""Prefix sums and a radix sort on one GPU, beside `cuda.compute` (NVIDIA's CCCL) and CuPy.

    python -m bench.gpu_primitives [--rounds 9]
Needs CuPy, an NVIDIA GPU, and the package `cuda-cccl` for the rows of `cuda.compute`. Every
version's result is checked on the GPU first. Versions take turns; times are medians of a call
that is waited for. Our sort is given how often each digit occurs, which searches count while they
make the keys; the others count it themselves. Bounds: prefix sums read and write each element
once; a sort of 32-bit keys with 32-bit indices reads both and writes both in each of four passes,
and reads the keys once before. First calls are timed in processes of their own, last of all: ours
with an empty cache on disk and with a filled one, that of `cuda.compute` once, as it has none.

Says on stderr what it is at. Writes bench/results/gpu_primitives.md, or into the folder that the
variable OUT names, anew after every group of rows: a run that is stopped leaves those it has.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.models.devices import device_model
from lanewise.primitives.radix_sort import BINS, PASSES, THREADS, pass_arguments, sort_text, tiles
from lanewise.runtime.device import get_device
from lanewise.runtime.memory import address

SIZES = (1_000, 1 << 20, 1 << 28)
SORTED = 1 << 20
ITEMS = 8  # keys of a thread: what searches take for so many
EXACT = 1 << 24  # whole numbers below it are exact in float32
FIRST_CALL_SECONDS = 60  # after which a process with a first call is given up

Call = Callable[[], Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--first", choices=("lanewise", "cuda.compute"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        _first(given.first)
        return
    _say("begins")
    import cupy

    bandwidth = device_model("cuda").most_bandwidth
    rows: list[Measurement] = []
    machine = describe_machine() | {"CuPy": cupy.__version__}
    path = Path(os.environ.get("OUT") or "bench/results") / "gpu_primitives.md"

    def add(name: str, calls: dict[str, Call], count: int, bound: float) -> None:
        _say(f"{name}: {', '.join(calls)}")
        rows.extend(_measured(name, calls, count, bound, given.rounds))
        write_results(path, "Prefix sums and a sort", rows, machine)

    for kind in ("float32", "int32"):
        for count in SIZES:
            name = f"sum of {count} {kind}"
            add(name, _sums(name, count, kind), count, bandwidth / 8)
    name = f"sort of {SORTED}"
    add(name, _sorts(name, SORTED), SORTED, bandwidth / (4 + PASSES * 16))
    for what, seconds in _first_calls():
        machine[what] = seconds
        write_results(path, "Prefix sums and a sort", rows, machine)
    print(path.read_text(encoding="utf-8"), flush=True)
    _say("done")


def _say(what: str) -> None:
    """What the run is at, and for how many seconds it has been at work."""
    print(f"[{time.perf_counter() - _BEGIN:6.1f} s] {what}", file=sys.stderr, flush=True)


_BEGIN = time.perf_counter()


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


def _sums(name: str, count: int, kind: str) -> dict[str, Call]:
    import cupy

    values, out = _values(cupy, count).astype(kind), cupy.empty(count, kind)
    calls: dict[str, Call] = {
        "lanewise": lambda: lw.cumsum(values, out=out),
        "CuPy": lambda: cupy.cumsum(values, out=out),
    }
    if (compute := _cuda_compute()) is not None:
        _say(f"{name}: cuda.compute builds its kernels")
        scan = compute.make_inclusive_scan(
            d_in=values, d_out=out, op=compute.OpKind.PLUS, init_value=None
        )
        asked = {"d_in": values, "d_out": out, "op": compute.OpKind.PLUS, "init_value": None}
        memory = cupy.empty(scan(temp_storage=None, num_items=count, **asked), "uint8")
        calls["cuda.compute"] = lambda: scan(temp_storage=memory, num_items=count, **asked)
    for version, call in calls.items():
        _say(f"{name}: checks {version}")
        out.fill(77)
        call()
        if not is_prefix_sum(cupy, values, out):
            raise SystemExit(f"{name}: {version} gives no prefix sums")
    return calls


def _values(module: Any, count: int) -> Any:
    """-1, 0 and 1 as int8, without an order: their sums stay small."""
    return (_hashed(module, count) % 3).astype("int8") - 1


def _hashed(module: Any, count: int) -> Any:
    """Numbers of 32 bits without an order, made where they are needed."""
    hashed = module.arange(count, dtype="uint32")
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        hashed ^= hashed >> shift
        hashed *= module.uint32(factor)
    hashed ^= hashed >> 16
    return hashed


def is_prefix_sum(module: Any, values: Any, sums: Any) -> bool:
    """Whether whole numbers are the prefix sums of others: each differs from the one before it by
    its value, and none is too large to be exact.
    """
    small = bool(module.abs(sums).max() < EXACT)
    steps = bool((sums[1:] - sums[:-1] == values[1:]).all())
    return small and steps and bool(sums[0] == values[0])


def _sorts(name: str, count: int) -> dict[str, Call]:
    import cupy

    keys = _hashed(cupy, count) >> 2  # of which some hundred pairs are equal
    order = cupy.arange(count, dtype="int32")
    sort, found = _radix_sort(keys)
    calls: dict[str, Call] = {"lanewise": sort}
    results: dict[str, Callable[[], Any]] = {"lanewise": lambda: found.view("int32")}
    kept: dict[str, Any] = {}

    def argsort() -> None:
        kept["order"] = cupy.argsort(keys, kind="stable")

    calls["CuPy"], results["CuPy"] = argsort, lambda: kept["order"]
    if (compute := _cuda_compute()) is not None:
        _say(f"{name}: cuda.compute builds its kernels")
        keys_out, order_out = cupy.empty_like(keys), cupy.empty_like(order)
        asked = {
            "d_in_keys": keys,
            "d_out_keys": keys_out,
            "d_in_values": order,
            "d_out_values": order_out,
        }
        radix = compute.make_radix_sort(order=compute.SortOrder.ASCENDING, **asked)
        memory = cupy.empty(radix(temp_storage=None, num_items=count, **asked), "uint8")
        calls["cuda.compute"] = lambda: radix(temp_storage=memory, num_items=count, **asked)
        results["cuda.compute"] = lambda: order_out
    for version, call in calls.items():
        _say(f"{name}: checks {version}")
        call()
        if not is_stable_order(cupy, keys, results[version]()):
            raise SystemExit(f"{name}: {version} gives no stable order")
    return calls


def is_stable_order(module: Any, keys: Any, order: Any) -> bool:
    """Whether an order has every place once, keys that grow, and equal ones as they were."""
    places = module.zeros(len(keys), bool)
    places[order] = True
    turned, indices = keys[order], order.astype("int64")
    grows = (turned[1:] > turned[:-1]) | (
        (turned[1:] == turned[:-1]) & (indices[1:] > indices[:-1])
    )
    return bool(places.all()) and bool(grows.all())


def _radix_sort(keys: Any) -> tuple[Call, Any]:
    """Our sort of a copy of the keys, whose digits were counted before, and where the order
    lies.
    """
    import cupy

    count, blocks = len(keys), tiles(len(keys), ITEMS)
    kernel = get_device("cuda").load(sort_text(ITEMS), "curve_sort", THREADS)
    shapes = {"keys0": count, "keys1": count, "values0": count, "values1": count}
    memory = {n: cupy.empty(length, "uint32") for n, length in shapes.items()}
    memory["status"] = cupy.empty(PASSES * blocks * BINS, "uint32")
    memory["tickets"] = cupy.empty(PASSES, "uint32")
    memory["histogram"] = cupy.empty(PASSES * BINS, "uint32")
    digits = [cupy.bincount(keys >> 8 * n & 255, minlength=BINS) for n in range(PASSES)]
    counts = cupy.stack(digits).astype("uint32").ravel()
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
    """The seconds of a first call; libraries are imported before."""
    import cupy

    values, out = cupy.ones(1_000, "float32"), cupy.empty(1_000, "float32")
    compute = _cuda_compute() if which == "cuda.compute" else None
    cupy.cuda.get_current_stream().synchronize()
    begin = time.perf_counter()
    if compute is None:
        lw.cumsum(values, out=out)
    else:
        plus = compute.OpKind.PLUS
        compute.inclusive_scan(d_in=values, d_out=out, op=plus, init_value=None, num_items=1_000)
    cupy.cuda.get_current_stream().synchronize()
    print(f"{time.perf_counter() - begin:.3f} s")


def _first_calls() -> Iterator[tuple[str, str]]:
    """What was timed, and its seconds, one after the other."""
    asked = [("lanewise", "lanewise, empty cache"), ("lanewise", "lanewise, filled cache")]
    if _cuda_compute() is not None:
        asked.append(("cuda.compute", "cuda.compute, which has no cache"))
    with tempfile.TemporaryDirectory() as folder:
        for which, what in asked:
            _say(f"first call of a process: {what}")
            yield f"first prefix sum of a process, {what}", _in_process(which, folder)


def _in_process(which: str, folder: str) -> str:
    """What a process says of its first call, or why it said nothing."""
    command = [sys.executable, "-m", "bench.gpu_primitives", "--first", which]
    where = {**os.environ, "LANEWISE_CACHE_DIR": folder}
    try:
        done = subprocess.run(
            command, env=where, capture_output=True, text=True, check=False,
            timeout=FIRST_CALL_SECONDS,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"more than {FIRST_CALL_SECONDS} s"
    return "".join((done.stdout.strip() or done.stderr.strip()).splitlines()[-1:])


if __name__ == "__main__":
    main()
