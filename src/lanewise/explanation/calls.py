"""A call, explained for a device that need not be there: its arrays lie on the host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.analysis.self_term import violated
from lanewise.compiler.work import describe_work
from lanewise.explanation.compiled import Offline, compiled, find_model, is_here, subject_for
from lanewise.explanation.launches import rows_of_tasks
from lanewise.explanation.measure import Times, stored_of_call
from lanewise.explanation.report import LaunchRow
from lanewise.explanation.rows_of_calls import counts_of
from lanewise.explanation.shapes import Kernel
from lanewise.explanation.subject import Subject
from lanewise.ir.names import GATHER_STEP, turns_of
from lanewise.language.target import is_gpu, target_of
from lanewise.launch.arguments import Arguments
from lanewise.launch.programs import Programs
from lanewise.models.devices import DeviceModel
from lanewise.patterns.call_tasks import task_list
from lanewise.patterns.counted_turns import counted_turns
from lanewise.patterns.mesh_pairs import of_part
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.search.elsewhere import CallElsewhere
from lanewise.planning.plan import Plan
from lanewise.runtime.mesh import Mesh


def compile_call(
    kernel: Kernel,
    *given: Any,
    device: str,
    arch: str | None = None,
    gather_step: float | None = None,
    requested: Plan | None = None,
    recalled: bool = False,
    **named: Any,
) -> Offline:
    """The kernel of a call with its default plan, compiled for "cpu" or "cuda" and loaded nowhere.

    given, named: the arguments, in the layouts of the device. A search builds its structure on the
    host. arch: see `compile_offline`. gather_step: how many elements apart neighbouring elements
    read, for predictions. requested: fields of the plan that are requested. recalled: with what
    tune() found for such calls on this machine, if that is where the device is.
    """
    return compile_arguments(
        kernel,
        given,
        named,
        device,
        find_model(device, arch),
        gather_step=gather_step,
        requested=requested,
        recalled=recalled and is_here(device, arch),
    )


def compile_arguments(
    kernel: Kernel,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    device: str,
    model: DeviceModel,
    *,
    gather_step: float | None = None,
    requested: Plan | None = None,
    recalled: bool = False,
    made_up: bool = False,
) -> Offline:
    """The same for the device of a model, whatever the parameters are called. recalled: also of
    what tune() found, the device being this machine's. made_up: the arguments are, and tell nothing
    of how often loops run.
    """
    recalled = recalled and requested is None  # tuned with the fields that a caller fixes
    subject, over, arguments = call_subject(
        kernel,
        given,
        named,
        device,
        model,
        gather_step=gather_step,
        requested=requested,
        recalled=recalled,
        made_up=made_up,
    )
    made = _recalled(subject, over) if recalled else compiled(subject)
    executable = made.executable
    if over is not None:
        tasks = over.tasks(executable, Programs(model.machine, model.compiled_for))
    elif arguments.summed or arguments.buckets is not None:
        calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
        counts = tuple(calls.skeleton.counts(calls.name, arguments))
        tasks = task_list(
            calls.name, calls.signature, arguments, executable, counts, None, runs=False
        )
    else:
        return made

    def launches(rows: tuple[LaunchRow, ...]) -> tuple[LaunchRow, ...]:
        return rows_of_tasks(tasks, executable, rows, subject.environment, model)

    return replace(made, launches=launches)


def _recalled(subject: Subject, over: CallElsewhere | None) -> Offline:
    """A subject compiled with the plan that tune() found for such calls, if there is one."""
    if over is not None:
        found = replace(subject, plan=over.plan) if over.plan is not None else subject
        made = compiled(found)
        times = Times(tuned=made.subject.chosen if over.plan is not None else None)
        return replace(made, times=times)
    times = stored_of_call(subject.reference, subject.layouts, subject.device, subject.environment)
    if times.tuned is None:
        return compiled(subject)
    made = compiled(replace(subject, plan=times.tuned))
    # what was proved for the values that it was tuned with need not hold for these
    if violated(made.executable.program.self_term, subject.environment):
        made, times = compiled(subject), replace(times, tuned=None)
    return replace(made, times=times)


def call_subject(
    kernel: Kernel,
    given: tuple[Any, ...],
    named: Mapping[str, Any],
    device: str,
    model: DeviceModel,
    *,
    gather_step: float | None = None,
    requested: Plan | None = None,
    recalled: bool = False,
    made_up: bool = False,
) -> tuple[Subject, CallElsewhere | None, Arguments]:
    """The same before it is compiled, what a call over a search is about, and the arguments as they
    would be on the device. recalled: over the structure that tune() found. made_up: see
    `compile_arguments`.
    """
    calls = kernel._calls  # pyright: ignore[reportPrivateUsage]
    here = calls.given(given, named)
    arguments = calls.skeleton.elsewhere(calls.signature, here, device)
    if requested is not None and requested.reciprocity == "grouped":  # of parts of a mesh
        arguments = of_part(arguments, 0, Mesh("cpu"))
    searched = kernel.searched if isinstance(kernel, Pairwise) else None
    reads: dict[str, float] = {} if gather_step is None else {GATHER_STEP: gather_step}
    counts = calls.skeleton.counts(calls.name, arguments)
    over = None if searched is None else searched.elsewhere(here, device, recalled=recalled)
    if over is None:
        reference = calls.subject.reference(arguments)
        turns = {} if made_up else counted_turns(calls.subject, arguments)
        environment = {
            **calls.subject.environment(arguments),
            **{turns_of(n): often for n, often in turns.items()},
        }
        work = calls.subject.work(arguments)
    else:
        turns = {turns_of(n): often for n, often in over.turns.items()}
        reference, environment = over.reference, {**over.environment, **turns}
        work = describe_work(reference, next(iter(counts.values())), target_of(device))
        if is_gpu(device) and reference.identical:
            reads = {GATHER_STEP: 1.0, **reads}  # threads are in the order of the structure
    layouts = {n: r.layout for n, r in arguments.records.items()}
    subject = subject_for(
        model,
        kernel.__name__,
        reference,
        device,
        {**environment, **reads},
        counts_of(environment, tuple(layouts), reference),
        layouts,
        work,
        requested,
    )
    if over is not None:
        subject = replace(subject, search=over.search)
    if requested is not None:  # which is a plan of the kernel
        arguments.buckets = None
    return subject, over, arguments
