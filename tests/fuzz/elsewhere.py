"""Random programs of every pattern, explained for a GPU that is not there: their calls lie on the host, and nothing is
compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.explanation.build import explain
from lanewise.explanation.calls import call_subject
from lanewise.explanation.report import Explanation
from lanewise.explanation.sites import box_of, subject_of_step, traffic_of_sites
from lanewise.explanation.subject import Subject
from lanewise.ir.pattern import Pattern
from lanewise.language.target import target_of
from lanewise.models.devices import DeviceModel, table_model
from lanewise.patterns.elementwise.gradient import ElementwiseGradient
from lanewise.patterns.pairwise.gradient import PairwiseGradient
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.build import SEARCH
from lanewise.patterns.sitewise.build import build_sitewise
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.patterns.sitewise.pattern import SITEWISE, complete_site_plan
from lanewise.patterns.sitewise.sites import Sites
from lanewise.planning.plan import Plan

ARCHITECTURE = "sm_90"  # of the GPU that is explained and compiled for
KIND = "cuda"


def explained_for_a_gpu(names: Any, plan: Plan | None = None) -> Explanation:
    """The explanation of a program's call with its default plan, or what is requested of one; raises `PlanError` for a
    plan that the kernel refuses.
    """
    return explain(subject_for_a_gpu(names, plan), resources={}, measure_resources=False)


def subject_for_a_gpu(names: Any, plan: Plan | None = None) -> Subject:
    """What is explained: the kernel of a call, of a step over sites, or of a gradient."""
    subject = _subject(names, plan)
    build_program(subject.reference, subject.plan, KIND)  # which refuses what the compiler would
    return subject


def _subject(names: Any, plan: Plan | None) -> Subject:
    model = table_model(ARCHITECTURE)
    with lw.device("cpu"):
        kernel, given, named = names.called("cpu")
        if isinstance(kernel, LatticeKernel):
            (sites,) = given
            return step_for_a_gpu(kernel, sites, named, model, plan)
        kernel, given, named = _single(kernel, tuple(given), named)
        return call_subject(kernel, given, named, KIND, model, requested=plan)[0]


def pattern_of(names: Any) -> Pattern:
    """The pattern that plans of a program are drawn for."""
    with lw.device("python"):
        kernel, given, named = names.called("python")
        if isinstance(kernel, LatticeKernel):
            return SITEWISE
        kernel, _, _ = _single(kernel, tuple(given), named)
    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        return SEARCH
    return kernel._calls.skeleton.pattern  # pyright: ignore[reportPrivateUsage]


def _single(
    kernel: Any, given: tuple[Any, ...], named: Mapping[str, Any]
) -> tuple[Any, tuple[Any, ...], Mapping[str, Any]]:
    """Of a gradient the kernel that computes it; of another kernel itself."""
    if isinstance(kernel, (ElementwiseGradient, PairwiseGradient)):
        values, derived = kernel._only("explain", given, named)  # pyright: ignore[reportPrivateUsage]
        return derived, (), values
    return kernel, given, named


def step_for_a_gpu(
    kernel: LatticeKernel, sites: Sites, values: dict[str, Any], model: DeviceModel, wish: Plan | None
) -> Subject:
    """The next step of these sites."""
    proved = kernel._proved(sites, values)  # pyright: ignore[reportPrivateUsage]
    arguments = kernel.kernels.arguments(sites, sites.step, sites.fresh, proved)
    reference = build_sitewise(arguments, target_of(KIND).index)
    plan = complete_site_plan(wish, model.machine, reference, sites.count, sites.shape)
    folded = build_program(reference, plan, KIND).reference
    traffic = traffic_of_sites(folded, sites)
    return subject_of_step(folded, plan, KIND, model, sites.layout, traffic, box_of(sites), wish)
