# pyright: basic, reportMissingImports=false
"""lbmpy's kernels behind a pipe, run by the Python that has lbmpy: one JSON object a line in, one
out.

{"make": name, "lattice": "D3Q19", "edge": n, "precision": "f32", "form": "pull", "threads": 2}
compiles BGK (compressible, deviations from the weights, AVX-512 where the CPU has it) for n^D sites
inside one layer of ghosts, as lbmpy has them, and with "walls": true lbmpy's own boundary handling
for walls at rest (half-way bounce-back) all around, with "streaming_stores": true stores past the
caches; {"run": name, "steps": k} takes steps and answers with the seconds; {"check": name, "file":
f, "steps": 2} starts from the populations of f and writes those after the steps back to it. Without
walls nothing fills the ghosts: this is lbmpy's kernel alone.
"""

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

import lbmpy
import numpy as np
import pystencils as ps
from lbmpy.advanced_streaming import Timestep
from lbmpy.boundaries import NoSlip
from lbmpy.boundaries.boundaryhandling import LatticeBoltzmannBoundaryHandling
from pystencils.codegen.config import CpuOptions, OpenMpOptions, VectorizationOptions

OMEGA = 1.7


@dataclass
class Kernel:
    """Arrays of shape (nx, ny[, nz], Q), x fastest in memory, and the kernels of a cycle of
    steps.
    """

    arrays: list[Any]
    phases: list[Any]
    velocities: list[tuple[int, ...]]
    pull: bool
    # what lbmpy's boundary handling does to arrays[0] after each phase, for each order of the
    # arrays
    walls: list[Any]

    def run(self, steps: int) -> None:
        """Take steps; `arrays[0]` holds the populations afterwards, with what walls send back."""
        for step in range(steps):
            self.phase(step % len(self.phases))
            if self.walls:
                self.walls[step % len(self.walls)]()

    def phase(self, number: int) -> None:
        """One step without walls."""
        if self.pull:
            self.phases[number](src=self.arrays[0], dst=self.arrays[1])
            self.arrays.reverse()
        else:
            self.phases[number](src=self.arrays[0])


def make(
    lattice: str,
    edge: int,
    precision: str,
    form: str,
    threads: int,
    walls: bool = False,
    streaming_stores: bool = False,
) -> Kernel:
    """Compile, and allocate."""
    stencil = lbmpy.LBStencil(lbmpy.Stencil[lattice])
    pull = form == "pull"
    timesteps = [Timestep.BOTH] if pull else [Timestep.EVEN, Timestep.ODD]
    pattern = "pull" if pull else "aa"
    phases = [
        _compile(stencil, precision, pattern, t, threads, streaming_stores) for t in timesteps
    ]
    arrays = [_array(stencil, edge + 2, precision) for _ in range(1 + pull)]
    kernel = Kernel(arrays, phases, [tuple(int(c) for c in e) for e in stencil], pull, [])
    if walls:
        kernel.walls = _walls(kernel, stencil, edge, precision, pattern, timesteps, threads)
    return kernel


def _walls(
    kernel: Kernel,
    stencil: Any,
    edge: int,
    precision: str,
    pattern: str,
    timesteps: list[Any],
    threads: int,
) -> list[Any]:
    """What lbmpy's boundary handling does: walls at rest in the layer of ghosts.

    It runs on the arrays of the kernel.
    """
    dtype = np.float32 if precision == "f32" else np.float64
    handlings: list[Any] = []
    for array in kernel.arrays:
        data = ps.create_data_handling(
            (edge,) * stencil.D, default_layout="fzyx", default_ghost_layers=1
        )
        data.add_array("pdfs", values_per_cell=stencil.Q, dtype=dtype, alignment=False)
        data.cpu_arrays["pdfs"] = array
        method = lbmpy.create_lb_method(
            lbmpy.LBMConfig(
                stencil=stencil,
                method=lbmpy.Method.SRT,
                relaxation_rate=OMEGA,
                compressible=True,
                zero_centered=True,
                continuous_equilibrium=False,
            )
        )
        handling = LatticeBoltzmannBoundaryHandling(
            method, data, "pdfs", streaming_pattern=pattern, openmp=threads > 1, default_dtype=dtype
        )
        wall, box = NoSlip(), (slice(None),) * stencil.D
        for axis in range(stencil.D):
            for end in (slice(0, 1), slice(-1, None)):
                handling.set_boundary(wall, (*box[:axis], end, *box[axis + 1 :]))
        handling.prepare()
        handlings.append(handling)
    if kernel.pull:  # after a step the arrays have changed places
        return [handlings[1], handlings[0]]
    return [lambda t=t: handlings[0](prev_timestep=t) for t in timesteps]


def _array(stencil: Any, edge: int, precision: str) -> Any:
    values = np.random.default_rng(1).uniform(-1e-4, 1e-4, edge)
    array = np.empty(
        (stencil.Q, *(edge,) * stencil.D), np.float32 if precision == "f32" else np.float64
    )
    array[...] = values
    return array.transpose(*range(stencil.D, 0, -1), 0)


def _compile(
    stencil: Any, precision: str, pattern: str, timestep: Any, threads: int, streaming_stores: bool
) -> Any:
    dtype = {"f32": "float32", "f64": "float64"}[precision]
    source, target = ps.fields(
        f"src({stencil.Q}), dst({stencil.Q}): {dtype}[{stencil.D}D]", layout="fzyx"
    )
    # With continuous equilibria those of D3Q19 are other polynomials than the usual ones.
    config = lbmpy.LBMConfig(
        stencil=stencil,
        method=lbmpy.Method.SRT,
        relaxation_rate=OMEGA,
        compressible=True,
        zero_centered=True,
        continuous_equilibrium=False,
        streaming_pattern=pattern,
        timestep=timestep,
    )
    optimisation = lbmpy.LBMOptimisation(
        symbolic_field=source,
        symbolic_temporary_field=target if pattern == "pull" else None,
        cse_global=True,
    )
    cpu = CpuOptions(
        openmp=OpenMpOptions(enable=threads > 1, num_threads=threads if threads > 1 else None),
        vectorize=VectorizationOptions(
            enable=True, assume_inner_stride_one=True, use_nontemporal_stores=streaming_stores
        ),
    )
    rule = lbmpy.create_lb_update_rule(lbm_config=config, lbm_optimisation=optimisation)
    target_cpu = ps.Target.X86_AVX512 if _has_avx512() else ps.Target.X86_AVX
    return ps.create_kernel(
        rule, ps.CreateKernelConfig(target=target_cpu, default_dtype=dtype, cpu=cpu)
    ).compile()


def _has_avx512() -> bool:
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        return any("avx512f" in line for line in lines)


def check(kernel: Kernel, file: str, steps: int) -> None:
    """Start from the arriving populations of a file, (Q, [nz,] ny, nx) in lbmpy's order; write
    those that arrive then.
    """
    given = np.load(file)
    if kernel.walls:  # around them lie the ghosts
        given = np.pad(given, [(0, 0), *[(1, 1)] * (given.ndim - 1)])
    axes = tuple(range(given.ndim - 2, -1, -1))  # of x, y, z in one population
    for array in kernel.arrays:
        for q, velocity in enumerate(kernel.velocities):
            before = np.roll(given[q], [-c for c in velocity], axes) if kernel.pull else given[q]
            array[..., q] = before.T
    kernel.run(steps)
    for q, velocity in enumerate(kernel.velocities):
        after = kernel.arrays[0][..., q].T
        given[q] = np.roll(after, velocity, axes) if kernel.pull else after
    inside = (slice(1, -1) if kernel.walls else slice(None),) * (given.ndim - 1)
    np.save(file, given[:, *inside])


def main() -> None:
    """Answer until the pipe closes."""
    kernels: dict[str, Kernel] = {}
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if "make" in order:
            name = order.pop("make")
            kernels[name] = make(**order)
            answer["velocities"] = kernels[name].velocities
            answer["version"] = f"{lbmpy.__version__}, pystencils {ps.__version__}"
        elif "check" in order:
            check(kernels[order["check"]], order["file"], order["steps"])
        elif "drop" in order:
            del kernels[order["drop"]]
        else:
            start = time.perf_counter()
            kernels[order["run"]].run(order["steps"])
            answer["seconds"] = time.perf_counter() - start
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
