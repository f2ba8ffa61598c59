"""How long does demodulation take on this GPU, for each template and SFT?

`python -m bench.gpu_waves` writes bench/results/gpu_waves.{md,json}, or into the folder that the
variable OUT names. A million templates of a band, 90 SFTs of two detectors, 8 terms on each side:
both kernels of `sims/waves/kernels.py` by several plans, beside a simple kernel written by hand;
then the thesis's stacks. Each version is held against float64 before it is timed, and stands beside
its bound: the instructions of its loop (by nvdisasm, where that is installed) over what the
schedulers issue. Versions are interleaved. `--device cpu --templates 2000` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

import lanewise as lw
from bench.harness import Measurement, describe_machine, interleave, write_results
from lanewise.runtime.memory import to_host
from lanewise.sims.waves.kernels import (
    Sft,
    Template,
    dirichlet_kernel,
    interpolated_kernel,
    polynomials,
)

TARGET, BAR = (
    6.0,
    8.7,
    # ps a template an SFT: what is wanted, and what a simple kernel written by hand takes on an
    # NVIDIA H200
)
DTERMS, DURATION, FIRST = 8, 1800.0, 100.0  # terms on each side; seconds; Hz
MARGIN = 40  # bins on both sides of the band
ROUNDS, WORK = 9, 0.02  # rounds; seconds of work that a round times together
SLOTS = 132 * 4 * 32 * 1.98e9  # instructions of threads that an NVIDIA H200 issues in a second

SIMPLE = r"""
extern "C" __global__ void simple(const double *f, const double *dt, const double *rate, const float2 *ab, const int *first,
                                  const float2 *x, int bins, int items, int count, float4 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double frequency = f[i];
    float4 sum = make_float4(0, 0, 0, 0);
    for (int s = 0; s < items; ++s) {
        double phase = frequency * dt[s], place = frequency * rate[s], whole = floor(place);
        float kappa = (float)(place - whole), re = 0, im = 0, s1, c1, s2, c2;
        double turn = 0.5 * place - phase;
        float lambda = (float)(turn - floor(turn));
        const float2 *near = x + (size_t)s * bins + ((int)whole - first[s] - 7);
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float2 v = __ldg(near + k);
            float r = __fdividef(1.0f, kappa + (7 - k));
            re += v.x * r;
            im += v.y * r;
        }
        sincospif(2 * kappa, &s1, &c1);
        sincospif(2 * lambda, &s2, &c2);
        c1 -= 1.0f;
        float a = (s1 * re - c1 * im) * 0.159154943f, b = (s1 * im + c1 * re) * 0.159154943f;
        float p = c2 * a - s2 * b, q = c2 * b + s2 * a;
        float2 w = ab[s];
        sum.x += w.x * p; sum.y += w.x * q; sum.z += w.y * p; sum.w += w.y * q;
    }
    out[i] = sum;
}
"""


@dataclass
class Search:
    """Templates of a band, `frequencies` for each spin-down, and random SFTs that cover it."""

    templates: int
    counts: Any  # SFTs by stack and detector
    step: float = 1.0 / (DURATION * 180)
    frequencies: int = 1 << 62

    def __post_init__(self) -> None:
        rng = np.random.default_rng(3)
        n = int(np.sum(self.counts))
        self.delay = np.sort(rng.uniform(0, DURATION * n, n))
        self.rate = DURATION * (1 + 1e-5 * rng.normal(size=n))
        self.a, self.b = rng.normal(size=(2, n)).astype("f4")
        number = np.arange(self.templates)
        self.frequency = FIRST + self.step * (number % self.frequencies)
        self.f1dot = -1e-11 * (number // self.frequencies)  # a bin or two over the SFTs
        self.bins = int(self.step * min(self.templates, self.frequencies) * DURATION) + 2 * MARGIN
        self.first = np.full(n, int(FIRST * DURATION) - MARGIN, "i4")
        self.x = (rng.normal(size=(n, self.bins)) + 1j * rng.normal(size=(n, self.bins))).astype(
            "c8"
        )

    @property
    def pairs(self) -> float:
        return float(self.templates) * float(np.sum(self.counts))

    def arguments(self, device: str, layout: lw.Layout) -> tuple[Any, Any, Any]:
        fields = {
            "delay": self.delay,
            "bins_per_hertz": self.rate,
            "a": self.a,
            "b": self.b,
            "first_bin": self.first,
        }
        sfts = lw.ragged(
            Sft.array(**fields, layout=layout, device=device), counts=self.counts, device=device
        )
        templates = Template.array(
            frequency=self.frequency, f1dot=self.f1dot, device=device, layout=lw.SoA()
        )
        return (
            templates,
            sfts,
            lw.ragged(
                self.x.reshape(-1), counts=np.full(len(self.delay), self.bins), device=device
            ),
        )

    def reference(self, chosen: Any) -> Any:
        """The sum in float64 for some templates, (templates, segments, 4)."""
        f, f1 = self.frequency[chosen, None], self.f1dot[chosen, None]
        place = self.rate * (f + self.delay * f1)
        phase = self.delay * (f + self.delay * f1 / 2)
        k = np.floor(place).astype(int)
        kappa = place - k
        terms = np.arange(1 - DTERMS, DTERMS + 1)
        x = self.x[np.arange(len(self.delay))[:, None], (k - self.first)[..., None] + terms]
        p = (np.sin(2 * np.pi * kappa) + 1j * (np.cos(2 * np.pi * kappa) - 1))[..., None] / (
            kappa[..., None] - terms
        )
        y = np.exp(2j * np.pi * (place / 2 - phase)) * (p * x).sum(-1) / (2 * np.pi)
        ends = np.concatenate([[0], np.cumsum(np.reshape(self.counts, -1))])
        fa, fb = (
            np.stack([(c * y)[:, s:e].sum(1) for s, e in pairwise(ends)], 1)
            for c in (self.a, self.b)
        )
        return np.stack([fa.real, fa.imag, fb.real, fb.imag], -1)


def sample(search: Search) -> Any:
    """Templates that are held against float64."""
    return np.unique(np.linspace(0, search.templates - 1, 400).astype(int))


def check(name: str, search: Search, found: Any) -> None:
    """Raise where a version is wrong: a quarter of a thousandth of the largest amplitude is what
    float32 phases leave.
    """
    chosen = sample(search)
    wanted = search.reference(chosen)
    away = np.abs(to_host(found)[chosen].reshape(wanted.shape) - wanted).max()
    if not away <= 5e-4 * np.abs(wanted).max():
        raise ArithmeticError(f"{name}: {away} away from float64, of {np.abs(wanted).max()}")


def wait() -> None:
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def loop_length(code: bytes) -> int:
    """Instructions of the longest loop of a cubin; 0 where nvdisasm is not installed."""
    if shutil.which("nvdisasm") is None:
        return 0
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        text = subprocess.run(
            ["nvdisasm", "-c", file.name], capture_output=True, text=True, check=False
        ).stdout
    labels, count, longest = dict[str, int](), 0, 0
    for line in text.splitlines():
        if label := re.match(r"\s*(\.L_x_\d+):", line):
            labels[label[1]] = count
        if instruction := re.search(r"/\*[0-9a-f]{4,}\*/\s+(.*?);", line):
            count += 1
            jump = re.search(r"BRA.*`\((\.L_x_\d+)\)", instruction[1])
            if jump and jump[1] in labels:
                longest = max(longest, count - labels[jump[1]])
    return longest


def plans() -> list[tuple[lw.Layout, lw.Plan]]:
    """What is tried: cells of a thread and threads of a block, then what else may help."""
    found: list[tuple[lw.Layout, lw.Plan]] = [
        (lw.AoS(), lw.Plan(targets=t, block=b))
        for t, b in ((1, 128), (1, 256), (2, 64), (2, 128), (2, 256), (4, 64), (4, 128))
    ]
    found += [
        (lw.SoA(), lw.Plan(targets=2, block=128)),
        (lw.AoS(), lw.Plan(targets=2, block=128, hoist=True)),
    ]
    found += [(lw.AoS(), lw.Plan(targets=1, block=128, unroll=u)) for u in (2, 4)]
    found += [(lw.AoS(), lw.Plan(targets=2, block=128, registers=r)) for r in (48, 64)]
    found += [(lw.AoS(), lw.Plan(targets=t, block=128, fast_math=True)) for t in (1, 2)]
    return found


def by_hand(search: Search) -> Callable[[], Any]:
    """A simple kernel in CUDA C++: float64 phases, 16 approximate reciprocals."""
    import cupy

    kernel = cupy.RawKernel(SIMPLE, "simple")
    ab = np.stack([search.a, search.b], 1)
    held = [
        cupy.asarray(a)
        for a in (search.frequency, search.delay, search.rate, ab, search.first, search.x)
    ]
    out, count, items = (
        cupy.empty((search.templates, 4), "f4"),
        np.int32(search.templates),
        np.int32(len(search.delay)),
    )

    def run() -> Any:
        kernel(
            ((search.templates + 127) // 128,),
            (128,),
            (*held, np.int32(search.bins), items, count, out),
        )
        return out

    return run


def versions(
    search: Search, device: str, problems: list[str]
) -> dict[str, tuple[Callable[[], Any], float]]:
    """Each version that runs and is right, with its bound in pairs a second."""
    found: dict[str, tuple[Callable[[], Any], float]] = {}
    for method in ("interpolated", "dirichlet"):
        kernel = interpolated_kernel() if method == "interpolated" else dirichlet_kernel(DTERMS)
        tried = (
            plans() if device != "cpu" else [(lw.SoA(), lw.Plan(targets=t)) for t in (1, 16, 64)]
        )
        for layout, plan in tried:
            name = f"{method}, {layout}, {plan}"
            try:
                templates, sfts, bins = search.arguments(device, layout)
                table = polynomials(sfts, bins, DTERMS) if method == "interpolated" else bins
                call = kernel.bind(templates, sfts, table, plan=plan)
                check(name, search, call())
                executable = call.compiled.executable
                length = loop_length(executable.cubins[0].code) if executable.cubins else 0
                cells = (plan.targets or 1) * (plan.unroll or 1)
                if length:
                    name += (
                        f" ({length / cells:.0f} instructions, "
                        f"{executable.cubins[0].resources.registers} registers)"
                    )
                found[name] = call, SLOTS * cells / length if length else 0.0
            except Exception:
                problems.append(f"{name}: {traceback.format_exc(limit=1)}")
    return found


def measured(
    search: Search, made: dict[str, tuple[Callable[[], Any], float]], device: str
) -> list[Measurement]:
    """The times of all versions, interleaved: several calls of each together, so that starting them
    does not count.
    """
    import time

    def repeated(run: Callable[[], Any]) -> tuple[Callable[[], None], int]:
        begin = time.perf_counter()
        run()
        if device != "cpu":
            wait()
        calls = max(1, min(50, int(WORK / (time.perf_counter() - begin))))

        def several() -> None:
            for _ in range(calls):
                run()
            if device != "cpu":
                wait()

        return several, calls

    runs = {name: repeated(run) for name, (run, _) in made.items()}
    times = interleave({name: run for name, (run, _) in runs.items()}, ROUNDS)
    rows = [
        Measurement(
            name, [s / runs[name][1] for s in seconds], search.pairs, "template-SFTs", made[name][1]
        )
        for name, seconds in times.items()
    ]
    return sorted(rows, key=lambda row: row.median)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--templates", type=int, default=1_000_000)
    options = parser.parse_args()
    folder = Path(os.environ.get("OUT", Path(__file__).parent / "results"))
    problems: list[str] = []
    facts = describe_machine()
    for title, search in (
        ("gpu_waves", Search(options.templates, [[45, 45]])),
        (
            "gpu_waves_stacks",
            Search(min(161 * 9, options.templates), np.full((84, 2), 45), 1 / DURATION, 161),
        ),
    ):
        made = versions(search, options.device, problems)
        if options.device != "cpu" and title == "gpu_waves":
            try:
                # sums both detectors in one, and has no spin-down: there is none in this search
                run = by_hand(search)
                both = search.reference(sample(search)).sum(axis=1)
                if (
                    not np.abs(to_host(run())[sample(search)] - both).max()
                    <= 5e-4 * np.abs(both).max()
                ):
                    raise ArithmeticError("it is away from float64")
                made["by hand, simple"] = run, 0.0
            except Exception:
                problems.append(f"by hand: {traceback.format_exc(limit=1)}")
        rows = measured(search, made, options.device)
        text = write_results(
            folder / f"{title}.md",
            f"Demodulation: {search.templates:,} templates, SFTs {np.shape(search.counts)}",
            rows,
            facts,
        )
        print(text)
        for row in rows:
            share = f", {100 * row.rate / row.bound:.0f} % of the bound" if row.bound else ""
            print(
                f"{row.median / search.pairs * 1e12:9.3f} ps a template an SFT{share}: {row.name}"
            )
        print(f"wanted: {TARGET} ps; a simple kernel by hand has taken {BAR} ps")
    print("\n".join(problems) or "no version failed")


if __name__ == "__main__":
    main()
