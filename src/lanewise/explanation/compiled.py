"""A kernel that is compiled for a device and loaded nowhere: for CUDA no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lanewise.compiler.default_plans import complete_plan
from lanewise.explanation.build import explain
from lanewise.explanation.measure import Times
from lanewise.explanation.report import Explanation, LaunchRow
from lanewise.explanation.subject import OPEN, Subject
from lanewise.ir import nodes as ir
from lanewise.ir.pattern import Work
from lanewise.language.target import CPU, target_of
from lanewise.launch.executable import Executable
from lanewise.launch.resources import kernel_resources
from lanewise.launch.support import compile_kernel
from lanewise.layouts import Layout
from lanewise.models.devices import DeviceModel, device_model, table_model
from lanewise.planning.plan import Plan
from lanewise.runtime.devices import missing_for_cuda

DEFAULT_ARCH = "sm_90"  # of the device to plan for where there is no GPU


@dataclass(frozen=True, slots=True)
class Offline:
    """A kernel compiled for a device and loaded nowhere."""

    subject: Subject
    executable: Executable
    # what tune() measured of such calls on this machine
    times: Times = field(default_factory=Times)
    # of a call: its launches, made of the rows of the kernel
    launches: Callable[[tuple[LaunchRow, ...]], tuple[LaunchRow, ...]] = lambda rows: rows

    def explain(self, *, measure_resources: bool = True) -> Explanation:
        """The explanation, with predictions for the subject's device model."""
        model = self.subject.model
        assert model is not None
        resources = kernel_resources(self.executable, model.arch)
        return explain(
            self.subject,
            resources=resources,
            measure_resources=measure_resources,
            times=lambda _: self.times,
            launches=self.launches,
        )


def subject_for(
    model: DeviceModel,
    name: str,
    reference: ir.Kernel,
    device: str,
    environment: Mapping[str, Any],
    counts: Mapping[str, int],
    layouts: Mapping[str, Layout],
    work: Work,
    requested: Plan | None = None,
) -> Subject:
    """A kernel with its default plan, or with the requested fields, for the device of a model (see
    `Subject`); nothing is compiled.
    """
    plan = complete_plan(requested, model.machine, work)
    return Subject(
        name, reference, plan, device, model, environment, counts, layouts, work,
        requested=requested or OPEN,
    )  # fmt: skip


def compiled(subject: Subject) -> Offline:
    """A subject compiled for the device of its model, which says what its kernels take."""
    assert subject.model is not None
    executable = compile_kernel(
        subject.reference,
        subject.plan,
        subject.device,
        requested=subject.requested,
        arch=subject.model.compiled_for,
    )
    found = replace(
        subject,
        plan=executable.program.plan,
        taken=tuple(c.resources for c in executable.cubins),
        capped=executable.capped,
    )
    return Offline(found, executable)


def is_here(device: str, arch: str | None) -> bool:
    """Whether the device that is explained for is this machine's, so that what was measured on it
    counts.
    """
    return target_of(device) is CPU or not (arch or missing_for_cuda())


def find_model(device: str, arch: str | None) -> DeviceModel:
    """Of the CPU or the GPU here, or of a typical GPU of an architecture."""
    if target_of(device) is CPU:
        return device_model("cpu")
    return table_model(arch or DEFAULT_ARCH) if arch or missing_for_cuda() else device_model("cuda")
