"""What `lanewise tune path/to/file.py:kernel` measures: calls of a kernel of any pattern on made-up
arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lanewise.cli.given import Shape, with_lists
from lanewise.support.errors import LanewiseError

if TYPE_CHECKING:
    from lanewise.explanation.samples import Samples
    from lanewise.patterns.search.tuning.calibration import CalibrationJob
    from lanewise.patterns.search.tuning.job import SearchJob
    from lanewise.patterns.sitewise.tuning import SiteJob
    from lanewise.tuning.job import Job

    AnyJob = Job | SearchJob | CalibrationJob | SiteJob


OF_TOTALS = (
    "a call of the gradient adds up what this kernel computes in another one, by its default plan; "
    "the plan above is for what .compile(...) and .bind(...) of the gradient give"
)


@dataclass(frozen=True, slots=True)
class JobList:
    """What is measured, one after the other. heading: of a gradient, what its kernels are."""

    jobs: tuple[AnyJob, ...]
    heading: str = ""


def jobs_of_file(
    name: str,
    count: int,
    device: str,
    layout: str | None,
    values: Mapping[str, float],
    shapes: Mapping[str, Shape],
    lists: str | None,
    near: float | None,
    asked: Mapping[str, Any],
) -> JobList:
    """A kernel of a file, `path/to/file.py:name`, as `lanewise explain` has it.

    near: how many sources lie within the radius of a search. asked: of a tree. Raises `InputError`
    for what does not fit, `DeviceError` for a device that is not there or has no plans.
    """
    from lanewise.cli.target import load_kernel
    from lanewise.cli.trees import over_method
    from lanewise.explanation.offline import heading_of
    from lanewise.explanation.searches import check_near
    from lanewise.explanation.site_samples import site_job
    from lanewise.layouts import layout_by_name
    from lanewise.patterns.elementwise.gradient import ElementwiseGradient
    from lanewise.patterns.pairwise.gradient import PairwiseGradient
    from lanewise.patterns.sitewise.kernel import Sitewise
    from lanewise.patterns.sitewise.stencil import Stencil
    from lanewise.runtime.devices import resolve
    from lanewise.tuning.job import check_tunable

    kernel = over_method(name, load_kernel(name), asked)
    # now: arrays of NumPy would go to the CPU
    check_tunable(kernel.__name__, resolve(device), {})
    kind = layout_by_name(layout) if layout else None
    sizes = with_lists(kernel, lists, shapes)
    given: dict[str, Any] = {"values": values, "shapes": sizes, "layout": kind}
    check_near(kernel, near)
    if isinstance(kernel, Sitewise | Stencil):
        return JobList((site_job(kernel, count, device, **given),))
    if not isinstance(kernel, ElementwiseGradient | PairwiseGradient):
        samples = _samples(kernel, count, device, near, given)
        return JobList((_job(kernel, samples.named),))
    of = kernel._kernel  # pyright: ignore[reportPrivateUsage]
    named = _samples(of, count, device, None, given).named
    if isinstance(kernel, ElementwiseGradient):
        _, parts = kernel._prepared((), named, weighed=False)  # pyright: ignore[reportPrivateUsage]
        jobs = tuple(_noted(_job(k, named), part.total) for part, k in parts)
    else:
        _, kernels = kernel._unweighed((), named)  # pyright: ignore[reportPrivateUsage]
        jobs = tuple(_job(k, named) for k in kernels)
    return JobList(jobs, heading_of(kernel, len(jobs)))


def _noted(job: AnyJob, total: bool) -> AnyJob:
    """A kernel of the gradient of elements; total: calls add up what it computes."""
    return replace(job, advise=lambda: OF_TOTALS) if total else job


def _samples(
    kernel: Any, count: int, device: str, near: float | None, given: Mapping[str, Any]
) -> Samples:
    """Arguments that lead out of no array."""
    from lanewise.explanation.samples import refused, sample_arguments
    from lanewise.explanation.searches import placed_arguments
    from lanewise.patterns.pairwise.kernel import Pairwise

    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        return placed_arguments(kernel, count, device, near=near, **given)[0]
    samples = sample_arguments(kernel, count, device, **given)
    if kernel.signature.arrays:
        try:  # what is measured does not test its indices
            kernel(**samples.named, checks=True)
        except LanewiseError as error:
            raise refused(error, samples) from error
    return samples


def _job(kernel: Any, named: Mapping[str, Any]) -> AnyJob:
    from lanewise.cli.products import search_job
    from lanewise.patterns.pairwise.kernel import Pairwise

    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        return search_job(kernel, kernel.searched, (), named)
    return kernel.tuning_job(**named)
