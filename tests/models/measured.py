"""The measured rows of bench/results, as programs that a model can predict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import lanewise as lw
from lanewise.compiler.pipeline import Program
from lanewise.ir.shared import shared_bytes
from lanewise.planning.plan import NEUTRAL, Plan
from lanewise.runtime.nvrtc import Resources
from tests.corpus import case
from tests.harness import program

RESULTS = Path(__file__).parents[2] / "bench" / "results"


@dataclass(frozen=True)
class Row:
    """Pairs a second of gravity on an NVIDIA H200, with the plan and the registers of its kernel."""

    case: str
    bodies: int
    pairs_per_second: float
    plan: Plan
    registers: int

    def program(self) -> Program:
        return program(case(self.case), lw.SoAoAS(), self.plan.filled(NEUTRAL), "cuda")

    def resources(self, built: Program) -> Resources:
        return Resources(self.registers, shared_bytes(built.kernels[0]), 0, 0, 0)

    @property
    def environment(self) -> Mapping[str, object]:
        return {"$target.count": self.bodies, "$source.count": self.bodies, "softening2": 1e-4}

    def __str__(self) -> str:
        return f"{self.case} {self.bodies} {self.plan.short()}"


def plan_of(text: str) -> Plan:
    """A plan as it is printed; "neutral" leaves every field open."""
    fields = dict(re.findall(r"(\w+)=('\w+'|\w+)", text))
    return Plan(
        **{k: v == "True" if v in ("True", "False") else v[1:-1] if v[0] == "'" else int(v) for k, v in fields.items()}
    )


def sweep_rows() -> list[Row]:
    rows: list[Row] = []
    bodies = 0
    for line in (RESULTS / "sweep_gpu_gravity.md").read_text().splitlines():
        if found := re.match(r"N = ([\d,]+)", line):
            bodies = int(found[1].replace(",", ""))
        elif found := re.match(r"\s+([\d.e+]+)\s+SoAoAS (.*) \| (\d+) registers", line):
            rows.append(Row("gravity", bodies, float(found[1]), plan_of(found[2]), int(found[3])))
    return rows


def product_rows() -> list[Row]:
    text = (RESULTS / "gpu_gravity.md").read_text()
    names = {"f32": "gravity", "mixed": "gravity_mixed", "f64": "gravity_f64"}
    rows: list[Row] = []
    for bodies, precision, rate in re.findall(r"\| ([\d,]+) (\w+): force kernel \| [\d.]+ \| ([\d.e+]+) \|", text):
        found = re.search(rf"- {bodies} {precision}: plan (.*?); \{{'registers': (\d+)", text)
        assert found is not None
        rows.append(Row(names[precision], int(bodies.replace(",", "")), float(rate), plan_of(found[1]), int(found[2])))
    return rows


def step_rows() -> list[Row]:
    """Steps of bench/results/mesh_cuda.md on an NVIDIA H200, one GPU and a mesh of one part: all but the pairs is
    less than a thousandth of them."""
    text = (RESULTS / "mesh_cuda.md").read_text().partition("Direct gravity and lattices again, on two NVIDIA H200")[2]
    tables = "\n".join(t for t in text.split("\n\n") if t.startswith("| gravity, bodies |"))
    found = re.findall(r"^\| ([\d,]+) \| ([\d.]+) \| ([\d.]+) \|", tables, re.MULTILINE)
    plan = "targets=8, unroll=4, block=32, registers=128, fma=True, reciprocity="
    return [
        Row("gravity", n, n**2 / (float(ms) / 1e3), plan_of(f"{plan}'{mode}'"), 128)
        for count, one, part in found
        for n in (int(count.replace(",", "")),)
        for mode, ms in (("ordered", one), ("grouped", part))
    ]
