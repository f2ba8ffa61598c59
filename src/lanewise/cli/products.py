"""The calls that products show, compiled to be explained and made ready to be measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from lanewise.planning.plan import Plan
from lanewise.sims.common.shown import (
    Shown,
    ShownCall,
    ShownDivision,
    ShownSize,
    ShownWork,
    TunedCall,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.explanation.compiled import Offline
    from lanewise.explanation.mesh_scaling import Divide, DividedStep
    from lanewise.explanation.mesh_steps import MeshStep
    from lanewise.patterns.pairwise.kernel import Pairwise
    from lanewise.patterns.search.searched import Searched
    from lanewise.patterns.search.tuning.calibration import CalibrationJob
    from lanewise.patterns.search.tuning.job import SearchJob
    from lanewise.patterns.sitewise.tuning import SiteJob
    from lanewise.tuning.job import Job


def compiled(shown: Shown, device: str, arch: str | None = None) -> Offline:
    """A call that a product shows, compiled for "cpu" or "cuda" and loaded nowhere.

    arch: see `compile_offline`.
    """
    from lanewise.explanation.calls import compile_call
    from lanewise.explanation.offline import compile_offline

    where: dict[str, Any] = {
        "device": device, "arch": arch, "requested": shown.requested, "recalled": True,
    }  # fmt: skip
    match shown:
        case ShownCall():
            return compile_call(
                shown.kernel, *shown.given, **where, gather_step=shown.gather_step, **shown.named
            )
        case ShownSize():
            sizes: dict[str, Any] = {"values": shown.values, "shapes": shown.shapes}
            return compile_offline(shown.kernel, shown.count, layout=shown.layout, **sizes, **where)
        case _:
            assert_never(shown)


def compiled_on_mesh(
    shown: ShownDivision, device: str, arch: str | None = None
) -> tuple[Offline, ...]:
    """The kernels of a step on a mesh of such devices, as a part runs them."""
    return tuple(_on_mesh(work, device, arch) for work in shown.works)


def _on_mesh(work: ShownWork, device: str, arch: str | None) -> Offline:
    from lanewise.patterns.mesh_pairs import groups_fit

    call = work.call
    made = compiled(call, device, arch)
    if not work.pairs or made.subject.plan.reciprocity == "off":
        return made
    (count, *_) = made.subject.counts.values()
    wish = Plan(reciprocity="grouped" if groups_fit(count) else "off")
    return compiled(replace(call, requested=(call.requested or Plan()).filled(wish)), device, arch)


def divided_over(mesh: str, shown: ShownDivision, kernels: tuple[Offline, ...]) -> MeshStep:
    """The step of a product on a mesh, by its text; its devices need not be there. kernels: see
    `compiled_on_mesh`.
    """
    from lanewise.explanation.mesh_kernels import kernel_time
    from lanewise.explanation.mesh_steps import explain_mesh
    from lanewise.patterns.mesh_pairs import sums_of_pairs
    from lanewise.runtime.mesh import listed

    devices = listed(mesh)
    works = [
        kernel_time(
            k.subject, k.executable.program, k.launches, near=w.near, pairs=w.pairs, times=w.times
        )
        for k, w in zip(kernels, shown.works, strict=True)
    ]
    laws = [sums for k in kernels if (sums := sums_of_pairs(k.executable.program)) is not None]

    def with_sums(divide: Divide) -> Divide:
        def divided(parts: int) -> DividedStep | str:
            step = divide(parts)
            if isinstance(step, str):
                return step
            return replace(step, sent=(*step.sent, *(law(step.rows) for law in laws)))

        return divided

    divide, grow = with_sums(shown.divide), with_sums(shown.grow)
    alike = len(set(devices)) == 1
    named = f"{len(devices)} x {devices[0]}" if alike else " + ".join(devices)
    return explain_mesh(named, devices, shown.kind, divide, works, grow)


def job_of(call: TunedCall) -> Job | SearchJob | CalibrationJob | SiteJob:
    """What is measured for a call."""
    from lanewise.patterns.pairwise.kernel import Pairwise

    kernel = call.kernel
    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        return search_job(kernel, kernel.searched, call.given, call.named)
    job = kernel.tuning_job(*call.given, **call.named)
    return job if call.note is None else replace(job, note=call.note)


def search_job(
    kernel: Pairwise, searched: Searched, given: tuple[Any, ...], named: Mapping[str, Any]
) -> SearchJob | CalibrationJob:
    """What is measured for a call over a search: structures, with their plans; trees, for one with
    an accuracy.
    """
    from lanewise.patterns.search.tree.search import Tree

    arguments = kernel._calls.given(given, named)  # pyright: ignore[reportPrivateUsage]
    if isinstance(kernel.search, Tree) and kernel.search.accuracy is not None:
        return searched.calibration_job(arguments, None)
    return searched.tuning_job(arguments, None)
