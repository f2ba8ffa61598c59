"""Compiled operators do what their Python text does, and CUDA keeps them in registers. Needs NVRTC, no GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.cuda import emit_cuda
from lanewise.language import types as t
from lanewise.language.lattices.base import Lattice
from lanewise.language.target import Machine
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.values import SiteValues
from lanewise.sims.lbm.boundaries import BOUNDARIES
from lanewise.sims.lbm.operators import OPERATORS
from tests.sims.lbm.operators.arrays import Vectors, on_arrays, stream
from tests.sims.lbm.operators.test_conservation import some_flow

ALL = [(lattice, name) for lattice in (lw.D2Q9, lw.D3Q19, lw.D3Q27) for name in OPERATORS]


def marked(quick: tuple[Lattice, str]) -> list[Any]:
    """All cases, one of them not slow."""
    return [pytest.param(*c, marks=[] if c == quick else pytest.mark.slow, id=f"{c[0].name}-{c[1]}") for c in ALL]


FORCE = [1e-3, 2e-3, -1e-3]


@pytest.mark.parametrize(("lattice", "name"), marked((lw.D2Q9, "bgk")))
def test_two_steps_on_the_cpu_are_those_of_python(lattice: Lattice, name: str) -> None:
    operator, force = OPERATORS[name], FORCE[: lattice.dimension]
    shape = (4, 6, 8)[-lattice.dimension :]
    f = some_flow(lattice, sites=int(np.prod(shape))).reshape(lattice.size, *shape)
    collide = operator.make(lattice, "f64", forced=True, eddies=operator.eddies)
    values: dict[str, Any] = {"omega": 1.7, **operator.parameters} | ({"smagorinsky": 0.15} if operator.eddies else {})
    flow = lw.sitewise(lattice)(collide)
    sites = flow.sites(shape, device="cpu")
    flow.set_populations(sites, f)
    flow.run(sites, 2, force=force, **values)
    for _ in range(2):
        on_arrays(collide)(f, force=Vectors(force), **values)
        f = stream(f, lattice)
    np.testing.assert_allclose(flow.populations(sites), f, rtol=0, atol=1e-15)


@pytest.mark.parametrize("real", ["f32", "f64"])
@pytest.mark.parametrize(("lattice", "name"), marked((lw.D3Q19, "trt")))
def test_cuda_keeps_a_site_in_registers(lattice: Lattice, name: str, real: str) -> None:
    """The collision with an inlet and an outlet as kinds: at most a pair of registers spills."""
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVRTC is not installed")
    from lanewise.runtime.nvrtc import compile_cubin

    collide = OPERATORS[name].make(lattice, real)
    flow = lw.sitewise(lattice)(collide)
    flow.wall(1, "wall")
    mask = np.zeros((8, 8, 32)[-lattice.dimension :], np.uint8)
    mask[..., 0], mask[..., -1], mask[..., 9] = 2, 3, 1
    for number, boundary, face in ((2, "velocity", "x-"), (3, "pressure", "x+")):
        function = BOUNDARIES[boundary].make(lattice, real, face, collide)
        function.__name__ += str(number)
        flow.kind(number, boundary)(function)
    sites = flow.sites(mask.shape, mask=mask, device="cpu", layout=lw.AoSoA(32), streaming="pull")
    uniforms = tuple(flow.kinds.parameters(sites).items())  # pyright: ignore[reportPrivateUsage]
    values = SiteValues((), uniforms, {}, {})
    reference = build_sitewise(flow.kernels.arguments(sites, 1, False, values), t.I32)  # pyright: ignore[reportPrivateUsage]
    program = build_program(reference, complete_site_plan(None, Machine("cuda", 132), reference), "cuda")
    for kernel in program.kernels:
        cubin = compile_cubin(emit_cuda(kernel, "test"), kernel.name, "sm_90")
        assert cubin.resources.spill_stores <= 8, cubin.log
        assert cubin.resources.registers <= 255
