"""Segmentwise kernels, random arguments for them, and what they mean in float64 NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.launch.arguments import bind_value_array
from lanewise.launch.task_list import BoundArray
from lanewise.planning.plan import NEUTRAL, Plan
from tests.harness import run_kernel

Array = np.ndarray[Any, Any]


@lw.record
class Template:
    frequency: lw.f64
    slope: lw.f32


@lw.record
class Sft:
    delay: lw.f64
    weight: lw.f32
    start: lw.i32


@lw.segmentwise
def power(template: Template, sft: Sft, bins: lw.Row[lw.vec2], scale: lw.f32) -> lw.vec2:
    k = lw.i32(lw.floor(template.frequency * sft.delay)) - sft.start
    near = lw.window(bins, k, 4)
    total = lw.vec2(0.0, 0.0)
    for j in range(4):
        total += near[3 - j] * (scale / (template.slope + lw.f32(3 - j)))
    return total * sft.weight


@lw.segmentwise
def moments(sft: Sft) -> tuple[lw.f64, lw.i64]:
    return sft.delay * sft.delay, lw.i64(sft.start)


@lw.segmentwise
def angles(template: Template, sft: Sft) -> lw.f64:
    return lw.sqrt(template.frequency) * sft.delay


@lw.segmentwise
def picked(sft: Sft, values: lw.Row[lw.f64]) -> lw.f64:
    if len(values) == 0:
        return 0.0
    return values[sft.start] * lw.f64(len(values))


@dataclass
class Case:
    """Arguments of `power`, made from a seed: segments of any lengths, rows of any lengths."""

    counts: Array
    templates: int = 5
    seed: int = 0
    longest: int = 12

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        n = int(self.counts.sum())
        self.template = {
            "frequency": rng.uniform(0, 12, self.templates), "slope": rng.uniform(1, 2, self.templates).astype("f4")
        }  # fmt: skip
        self.sft = {
            "delay": rng.uniform(0.5, 1, n), "weight": rng.normal(size=n).astype("f4"), "start": rng.integers(0, 3, n).astype("i4")
        }  # fmt: skip
        self.lengths = rng.integers(0, self.longest, n) if n else np.zeros(0, int)
        m = int(self.lengths.sum())
        self.bins = (rng.normal(size=m) + 1j * rng.normal(size=m)).astype("c8")

    def arguments(self, device: str = "cpu", layout: lw.Layout | None = None) -> tuple[Any, Any, Any]:
        records = Sft.array(**self.sft, device=device, layout=layout)
        items = lw.ragged(records, counts=self.counts, device=device)
        rows = lw.ragged(self.bins, counts=self.lengths, device=device)
        return Template.array(**self.template, device=device, layout=layout), items, rows

    def reference(self, scale: float) -> Array:
        """`power` in float64, shape (templates, segments, 2)."""
        ends, rows = (np.concatenate([[0], np.cumsum(c.reshape(-1))]) for c in (self.counts, self.lengths))
        result = np.zeros((self.templates, self.counts.size, 2))
        for p in range(self.templates):
            for s in range(self.counts.size):
                for i in range(ends[s], ends[s + 1]):
                    k = int(np.floor(self.template["frequency"][p] * self.sft["delay"][i])) - self.sft["start"][i]
                    row = self.bins[rows[i] : rows[i + 1]].astype(complex)
                    near = row[k : k + 4] if 0 <= k <= len(row) - 4 else np.full(4, complex(np.nan, np.nan))
                    x = (near * (scale / (self.template["slope"][p] + np.arange(4.0)))).sum() * self.sft["weight"][i]
                    result[p, s] += x.real, x.imag
        return result.reshape(self.templates, *self.counts.shape, 2)


def interpreted(kernel: Any, arguments: tuple[Any, ...], named: dict[str, Any], plan: Plan) -> tuple[Array, ...]:
    """The kernels of a plan for a GPU, thread by thread: the results, cells along one axis."""
    calls = kernel._calls
    given = calls.given(arguments, named)
    reference = calls.skeleton.build(calls.lowered, calls.signature, given, t.I32)
    program = build_program(reference, plan.filled(Plan(block=32).filled(NEUTRAL)), "cuda")
    bound: dict[str, BoundArray] = dict(calls.subject.bound(given))
    environment = calls.subject.environment(given)
    results: list[Array] = []
    for a in reference.arrays:
        if a.written:
            kinds = [x.type for x in a.leaves]
            shape = (calls.subject.count(given), len(kinds)) if len(kinds) > 1 else (calls.subject.count(given),)
            results.append(np.full(shape, 77, kinds[0].dtype))
            bound[a.name] = bind_value_array(
                results[-1], t.Vector(kinds[0], len(kinds)) if len(kinds) > 1 else kinds[0]
            )
    for k in program.kernels:
        run_kernel(k, bound, environment)
    return tuple(results)


def reference_kernel(
    kernel: Any, arguments: tuple[Any, ...], named: dict[str, Any], index: t.Scalar = t.I32
) -> ir.Kernel:
    """The kernel as the pattern writes it."""
    calls = kernel._calls
    return calls.skeleton.build(calls.lowered, calls.signature, calls.given(arguments, named), index)
