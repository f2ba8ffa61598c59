"""What is explained: a kernel with a plan, in one launch, on a device that may not be there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.compiler.default_plans import decide
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.ir.pattern import Work
from lanewise.language.target import target_of
from lanewise.layouts import AoS, Layout
from lanewise.models.devices import DeviceModel
from lanewise.models.roofline import SiteTraffic
from lanewise.patterns.sitewise.pattern import complete_site_plan
from lanewise.planning.decisions import Decisions
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.runtime.nvrtc import Resources

OPEN = Plan()


@dataclass(frozen=True, slots=True)
class Subject:
    """A kernel, its plan, and a launch of it.

    reference: the kernel before any pass; plan: every field decided; device: "cpu", "cuda" or
    "cuda:1"; model: of that device, None for the interpreter; environment: counts and uniform
    arguments by their IR names; counts: the same counts by the names of the parameters; layouts: of
    the record parameters. taken: what the compiler says of the kernels of the plan (CUDA).
    invented, shapes: values and sizes that were not given. traffic, box: what a step over sites
    moves, and which sites. search: the structure that sources are found by, and why. requested: the
    plan that was requested; capped: the one that was chosen, where its cap of registers was lifted.
    """

    name: str
    reference: ir.Kernel
    plan: CompletePlan
    device: str
    model: DeviceModel | None
    environment: Mapping[str, Any]
    counts: Mapping[str, int]
    layouts: Mapping[str, Layout]
    work: Work
    taken: tuple[Resources, ...] = ()
    invented: Mapping[str, Any] = field(default_factory=dict[str, Any])
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, "tuple[int, ...]"])
    traffic: SiteTraffic | None = None
    box: str = ""
    search: str = ""
    requested: Plan = OPEN
    capped: CompletePlan | None = None
    layout_reasons: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def chosen(self) -> CompletePlan:
        """The plan before a cap of registers was lifted."""
        return self.capped or self.plan

    @property
    def kind(self) -> str:
        """The kind of device that the pipeline knows: "cuda" for every GPU, "cpu" otherwise."""
        return target_of(self.device).pipeline

    def default(self, asked: Plan) -> CompletePlan:
        """The plan with these fields, all others by default."""
        return self.decided(asked).plan

    def decided(self, asked: Plan) -> Decisions:
        """The same with the reasons."""
        assert self.model is not None
        if self.traffic is None:
            return decide(asked, self.model.machine, self.work)
        sites, machine = self.traffic.sites, self.model.machine
        return Decisions.of(asked, complete_site_plan(asked, machine, self.reference, sites))

    def unfit(self, plan: CompletePlan) -> str | None:
        """Why this launch, by its sizes, cannot have a plan, or None."""
        if self.model is None:
            return None
        return self.work.pattern.unfit(self.model.machine, self.work, plan)

    def with_layout(self, layout: Layout) -> Subject:
        """The same with all records in another layout."""
        return replace(
            self,
            reference=_arranged(self.reference, self.layouts, layout),
            layouts=dict.fromkeys(self.layouts, layout),
        )

    @property
    def is_plain(self) -> bool:
        """Whether all records lie as arrays of structures: the layout that every other one is
        compared with.
        """
        return all(layout == AoS() for layout in self.layouts.values())


def _arranged(reference: ir.Kernel, records: Mapping[str, Any], layout: Layout) -> ir.Kernel:
    arrays = tuple(
        replace(a, arrangement=layout.arrange(a.leaves)) if _is_record(a, records) else a
        for a in reference.arrays
    )
    return replace(reference, arrays=arrays)


def _is_record(array: ir.ArrayArgument, records: Mapping[str, Any]) -> bool:
    """A record parameter, or the other copy of the populations of sites."""
    return array.name in records or array.name == own("next")
