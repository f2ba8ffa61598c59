"""Kernels over sites at any stage, interpreted on the memory of some sites."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import lanewise as lw
from lanewise.compiler.pipeline import Program, build_program
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.target import Machine
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.calls import bind_phase
from lanewise.patterns.sitewise.flags import make_flags, make_marks, mark_shared_sectors
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.patterns.sitewise.sites import row_block_of
from lanewise.planning.plan import Plan
from tests.harness import run_kernel
from tests.lbm.boxes import Box

Array = np.ndarray[Any, Any]


@lw.sitewise(lw.D2Q9)
def relax(f: lw.populations, omega: lw.f32):
    for q in lw.D2Q9:
        f[q] -= omega * f[q]


@relax.kind(1, "source")
def source(f: lw.populations, level: lw.f32):
    f[0] = level


relax.wall(2, "wall")
relax.wall(3, "lid", velocity="lid_velocity")

VALUES = {"omega": 0.5, "level": 2.0, "lid_velocity": (0.1, 0.0)}


def reference_kernel(flow: Any, sites: Any, index: t.Scalar = t.I64, **values: Any) -> ir.Kernel:
    """What the pattern writes for the next step of some sites. `values` of kinds that do not occur are left alone."""
    arguments = flow.kernels.arguments(sites, sites.step, sites.fresh, flow.kinds.values(sites, values))
    return build_sitewise(arguments, index)


@dataclass(frozen=True)
class Interpreted:
    """Kernels in place of an executable: bound like one, run by the interpreter."""

    program: Program

    @property
    def tasks(self) -> Any:
        return self

    def bound(self, arrays: Any, environment: Any) -> Any:
        def run() -> None:
            for kernel in self.program.kernels:
                run_kernel(kernel, dict(arrays), dict(environment))

        return run


def after(flow: Any, sites: Any, reference: ir.Kernel, kernels: Sequence[ir.Kernel], **values: Any) -> list[bytes]:
    """The bytes of all copies of the populations after these kernels ran one step; the sites are left as they were."""
    program = Program(Plan(), reference, tuple(kernels))
    before = [copy.data.copy() for copy in sites.copies]
    call = bind_phase(Interpreted(program), sites, sites.step, flow.kinds.values(sites, values), ())  # type: ignore[arg-type]
    call()
    found = [bytes(copy.data) for copy in sites.copies]
    for copy, data in zip(sites.copies, before, strict=True):
        copy.data[:] = data
    return found


def lowered(reference: ir.Kernel, plan: Plan, device_kind: str) -> tuple[ir.Kernel, ...]:
    """The kernels of a plan, as they are emitted."""
    complete = complete_site_plan(plan, Machine(device_kind, 8), reference)
    return build_program(reference, complete, device_kind).kernels


def box_sites(flow: Any, box: Box, form: str, *, layout: Any = None, storage: str = "f32", steps: int = 0) -> Any:
    """Sites of a box for the interpreter, with small integers everywhere but in walls, before some step."""
    sites = flow.sites(box.shape, mask=box.mask, edges=dict(box.edges), storage=storage, streaming=form, layout=layout, device="python")  # fmt: skip
    rng = np.random.default_rng(len(box.lattice) + steps)
    solid = np.isin(sites.kinds.reshape(-1), sorted(sites._walls))
    for copy in sites.copies:
        for q in range(box.lattice.size):
            values = np.where(solid, 0, rng.integers(0, 40, sites.count))
            setattr(copy, f"q{q}", values.astype(sites.storage.dtype))
    sites.step, sites.fresh = steps, False
    return sites


def read_by_words(sites: Any, *, dense: bool) -> Any:
    """The same sites without marks: kernels learn from words what is special, as they do in place, or in dense boxes of
    a GPU.
    """
    sites.marks, sites.solids, sites.dense = None, None, dense
    return sites


def read_by_place(sites: Any, *, dense: bool = False) -> Any:
    """The same sites as a GPU has them: each computes where it lies, and rows may be whole blocks of the layout."""
    walls = frozenset(sites._walls)
    sites._parts.clear()
    sites.placed, sites.framed = True, not (dense or sites.kinds.any())
    sites.row_block = row_block_of(sites.layout, sites.shape[-1])
    sites.flags = make_flags(sites.lattice, sites.kinds, sites.edges, walls, placed=True)
    if dense:
        solid = np.isin(sites.kinds.reshape(-1), sorted(walls))
        mark_shared_sectors(sites.flags, solid, 8)
        return read_by_words(sites, dense=True)
    sites.marks = make_marks(sites.flags)
    return sites
