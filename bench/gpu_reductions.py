"""Reductions of pairs on one GPU: the nearest of many centres and Gaussian sums, by several plans,
beside KeOps where it is installed.

    python -m bench.gpu_reductions [--targets 1000000] [--sources 100000] [--seconds 40]
Needs CuPy and an NVIDIA GPU. Some targets of every version are compared with float64 first.
Versions take turns, one call each a round; times are medians, with the whole call in them. The
bound: every pair issues the instructions that its formula needs, one a clock and lane; the
reciprocal throughput of the exponential unit where that is more. Writes
bench/results/gpu_reductions_NAME.md, or into the folder that the variable OUT names.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results

ROUNDS = 5
CHECKED = 256  # targets
LANES, EXPONENTIALS = 128, 16  # of a multiprocessor, a clock
ARGMIN_SLOTS = 9  # 3 differences, 3 products with sums, 1 comparison, 2 selections
# 3 differences, 3 products with sums, 1 product, 1 exponential, 1 product with a sum
GAUSSIAN_SLOTS = 9


@lw.record
class Point:
    """A target or a source."""

    position: lw.vec3
    weight: lw.f32


@lw.pairwise
def closest(point: Point, center: Point) -> lw.ArgMin[lw.f32]:
    d = point.position - center.position
    return lw.dot(d, d)


@lw.pairwise
def gaussian(point: Point, center: Point) -> lw.f32:
    d = point.position - center.position
    return center.weight * lw.exp(-lw.dot(d, d))


@lw.pairwise
def powers(point: Point, center: Point) -> lw.f32:
    """The same of positions that were multiplied by sqrt(log2(e)): the exponential unit computes
    powers of two, and no product is left.
    """
    d = point.position - center.position
    return center.weight * lw.exp2(-d.x * d.x - d.y * d.y - d.z * d.z)


@lw.pairwise
def soft(point: Point, center: Point) -> lw.LogSumExp[lw.f32]:
    d = point.position - center.position
    return -lw.dot(d, d)


# no few last blocks that run alone
PARTED = lw.Plan(targets=8, unroll=4, block=256, tile=256, slices=1, parts=16)
PLANS: dict[str, lw.Plan | None] = {
    "default": None,
    "4 targets": lw.Plan(targets=4, unroll=8, block=256, tile=256, slices=1, parts=1),
    "4 targets, unroll 16": lw.Plan(targets=4, unroll=16, block=256, tile=256, slices=1, parts=1),
    "8 targets": lw.Plan(targets=8, unroll=8, block=128, tile=128, slices=1, parts=1),
    "2 targets": lw.Plan(targets=2, unroll=8, block=256, tile=256, slices=1, parts=1),
    "8 targets, 16 parts": PARTED,
    "8 targets, 16 parts, order as written": replace(PARTED, schedule="written"),
}


def keops(x: Any, y: Any, weight: Any) -> dict[str, Callable[[], Any]]:
    """The same by KeOps, on the same memory; nothing where it is not installed."""
    try:
        import torch
        from pykeops.torch import LazyTensor
    except Exception as error:  # not installed, or it does not compile here
        print(f"KeOps is not available: {type(error).__name__}: {error}")
        return {}
    a, b, w = (torch.from_dlpack(v) for v in (x, y, weight.reshape(-1, 1)))
    x_i, y_j = LazyTensor(a[:, None, :]), LazyTensor(b[None, :, :])
    d2 = ((x_i - y_j) ** 2).sum(-1)
    return {
        "argmin": lambda: d2.argmin(dim=1),
        "gaussian": lambda: (-d2).exp() @ w,
        "logsumexp": lambda: (-d2).logsumexp(dim=1),
    }


def answers(x: Any, y: Any, weight: Any) -> dict[str, Any]:
    """Of some targets, in float64."""
    d2 = ((x[:CHECKED, None].astype("f8") - y[None]) ** 2).sum(-1)
    sums = (np.exp(-d2) * weight).sum(1)
    return {"argmin": d2, "gaussian": sums, "logsumexp": np.log(np.exp(-d2).sum(1))}


def check(name: str, found: Any, answer: Any) -> None:
    """Raise `AssertionError` for a wrong result; a nearest centre may be another one that is as
    near in float32.
    """
    found = np.asarray(found.cpu() if hasattr(found, "cpu") else found.get()).reshape(-1)[:CHECKED]
    if name == "argmin":
        np.testing.assert_allclose(
            answer[np.arange(CHECKED), found], answer.min(1), rtol=1e-4, atol=1e-9
        )
    else:
        np.testing.assert_allclose(found, answer, rtol=2e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=1_000_000)
    parser.add_argument("--sources", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=40.0)
    given = parser.parse_args()
    import cupy as cp

    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(n, 3)).astype("f4") for n in (given.targets, given.sources))
    weight = rng.uniform(0.5, 1.5, given.sources).astype("f4")
    points = Point.array(position=x, weight=np.ones(given.targets, "f4"), device="cuda")
    centers = Point.array(position=y, weight=weight, device="cuda")
    scale = np.sqrt(np.log2(np.e))
    scaled = (
        Point.array(
            position=(x * scale).astype("f4"), weight=np.ones(given.targets, "f4"), device="cuda"
        ),
        Point.array(position=(y * scale).astype("f4"), weight=weight, device="cuda"),
    )
    peers, exact = keops(cp.asarray(x), cp.asarray(y), cp.asarray(weight)), answers(x, y, weight)
    device = cp.cuda.Device()
    clock = 1e3 * device.attributes["ClockRate"] * device.attributes["MultiProcessorCount"]
    pairs, deadline = given.targets * given.sources, time.perf_counter() + given.seconds
    out = Path(os.environ.get("OUT", "bench/results"))
    for name, kernel, fast in (
        ("argmin", closest, (False,)), ("gaussian", gaussian, (False, True)), ("logsumexp", soft, (False, True))
    ):  # fmt: skip
        calls: dict[str, Callable[[], Any]] = {}
        for quick in fast:
            for plan_name, plan in PLANS.items():
                wish = replace(plan or lw.Plan(), fast_math=quick)
                try:
                    calls[f"lanewise, {plan_name}{', fast math' if quick else ''}"] = kernel.bind(
                        points, centers, plan=wish
                    )
                except lw.LanewiseError as error:
                    print(f"{name}, {plan_name}: {error}")
        if name == "gaussian":
            for quick in fast:
                label = f"lanewise, powers of two{', fast math' if quick else ''}"
                calls[label] = powers.bind(*scaled, plan=lw.Plan(fast_math=quick))
                calls[f"{label}, 2 targets"] = powers.bind(
                    *scaled, plan=replace(PLANS["2 targets"] or lw.Plan(), fast_math=quick)
                )
        if name in peers:
            calls["KeOps"] = peers[name]
        for version, call in list(calls.items()):
            try:
                check(name, call(), exact[name])
            except Exception as error:
                print(f"{name}, {version}: {type(error).__name__}: {str(error)[:400]}")
                del calls[version]

        def waiting(call: Callable[[], Any]) -> Callable[[], None]:
            def run() -> None:
                call()
                device.synchronize()

            return run

        rounds = ROUNDS if time.perf_counter() < deadline else 1
        times = interleave({n: waiting(c) for n, c in calls.items()}, rounds)
        bound = (
            LANES * clock / ARGMIN_SLOTS
            if name == "argmin"
            else min(LANES / GAUSSIAN_SLOTS, EXPONENTIALS) * clock
        )
        rows = [Measurement(n, t, pairs, "pairs", bound) for n, t in times.items()]
        print(
            write_results(
                out / f"gpu_reductions_{name}.md",
                f"{name}: {given.targets:,} x {given.sources:,}",
                rows,
                describe_machine(),
            )
        )


if __name__ == "__main__":
    main()
