"""The calls that products show, compiled to be explained and made ready to be measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, assert_never

from lanewise.sims.common.shown import Shown, ShownCall, ShownDivision, ShownSize, TunedCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lanewise.explanation.compiled import Offline
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


def divided_over(mesh: str, shown: ShownDivision, kernels: tuple[Offline, ...]) -> MeshStep:
    """The step of a product on a mesh, by its text; its devices need not be there. kernels: of the
    product, compiled for one of them.
    """
    from lanewise.explanation.mesh_steps import explain_mesh, kernel_time
    from lanewise.runtime.mesh import listed

    devices = listed(mesh)
    times = [kernel_time(k, near=near) for k, near in zip(kernels, shown.near, strict=True)]
    alike = len(set(devices)) == 1
    named = f"{len(devices)} x {devices[0]}" if alike else " + ".join(devices)
    return explain_mesh(named, devices, shown.kind, shown.divide, times)


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
