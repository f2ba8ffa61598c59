"""From an element function to the kernels of a plan: the table of contents of the compiler.

    frontend   Python source -> Function                       frontend/function.py
    pattern    Function + arguments -> reference Kernel        patterns/
    stages     Kernel + complete plan + target -> Kernel(s)    compiler/stages.py, passes/
    emission   Kernel -> CUDA C++ or Python text               emit/
    runtime    text -> compiled, cached, launched              runtime/

The order of the stages stands here, with the reason where it matters. The IR is verified after each
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

from lanewise.analysis.self_term import Proof
from lanewise.compiler.lengths import check_calls, check_copies
from lanewise.compiler.stages import (
    Checked,
    Kernels,
    arrange,
    check_device,
    check_pattern,
    check_shared_memory,
    conditions,
    divide,
    lighten_loops,
    shape,
)
from lanewise.ir import nodes as ir
from lanewise.ir.functions import with_distinct_functions
from lanewise.ir.pattern import as_it_is
from lanewise.ir.traverse import adds_in_order
from lanewise.ir.verify import Sound, verify_kernel
from lanewise.language.target import TARGETS, Target
from lanewise.passes import (
    constant_folding,
    dead_code,
    layout_lowering,
    load_selection,
    normal_form,
    register_cap,
    scalar_replacement,
    sums_in_parts,
    uniform_parameters,
)
from lanewise.planning.plan import CompletePlan

StageObserver = Callable[[str, ir.Kernel], None]
KernelObserver = Callable[[ir.Kernel], None]


@dataclass(frozen=True, slots=True)
class Program:
    """The kernels of one call, in order of launch.

    `reference` is the same work before any pass that reshapes it: the interpreter's input.

    They do that work for the values of the uniforms that `self_term` allows.
    """

    plan: CompletePlan
    reference: ir.Kernel
    kernels: tuple[ir.Kernel, ...]
    self_term: Proof = field(default_factory=Proof)


def _nothing(kernel: ir.Kernel) -> None:
    """Nothing is done with it."""


def build_program(
    reference: ir.Kernel,
    plan: CompletePlan,
    device_kind: str,
    observe: StageObserver = lambda stage, kernel: None,
    *,
    between: bool = True,
    done: KernelObserver = _nothing,
) -> Program:
    """Apply the passes that `plan` asks for on a "cpu" or "cuda" device.

    `observe` sees every stage by name: print the kernel, or run it. between: verify the kernel of
    each stage, and not only those that come out. done: called with each kernel that comes out,
    before passes begin with the next one where they are as independent as panels. Raises
    `PlanError` for a plan that does not fit the kernel.
    """
    sound = Sound()

    def checked(stage: str, kernel: ir.Kernel) -> ir.Kernel:
        if between:
            verify_kernel(kernel, sound)
        observe(stage, kernel)
        return kernel

    simple = simplified(reference, checked)
    return program_of(
        simple,
        plan,
        device_kind,
        checked,
        _nothing if between else partial(verify_kernel, sound=sound),
        done,
    )


def simplified(reference: ir.Kernel, checked: Checked = as_it_is) -> ir.Kernel:
    """A reference kernel as every plan finds it: folded, without what nothing reads."""
    kernel = checked("pattern", with_distinct_functions(reference))
    kernel = checked("constant folding", constant_folding.apply(kernel))
    # after folding, which makes indices literals
    kernel = checked("scalar replacement", scalar_replacement.apply(kernel))
    # after folding, which leaves values unread
    simple = checked("dead code", dead_code.apply(kernel))
    check_calls(simple)
    return simple


def program_of(
    simple: ir.Kernel,
    plan: CompletePlan,
    device_kind: str,
    checked: Checked = as_it_is,
    verify: KernelObserver = _nothing,
    done: KernelObserver = _nothing,
    normal: ir.Kernel | None = None,
) -> Program:
    """What `build_program` makes of a kernel that is `simplified`. verify: called with each kernel
    that comes out, where `checked` verifies nothing. normal: its normal form, where it was made
    before.
    """
    target = TARGETS[device_kind]
    check_device(simple, plan, target)
    check_pattern(simple, plan, target)
    normal = normal or normal_form.apply(simple, target, plan)
    if normal is not simple:
        normal = checked("normal form", normal)
    # first: everything else takes the functions as they are then
    arranged = arrange(normal, plan, checked)
    # before loops are shaped: each kernel has its own
    parts = divide(arranged, plan, target, checked)
    light = lighten_loops(parts, plan, checked)  # while a loop over sources is one loop
    kernels: list[ir.Kernel] = []
    for group in _groups(light, plan, target, checked):
        for k in finished(group, plan, target, checked):
            verify(k)
            if target.has_blocks:
                check_shared_memory(k, plan)
            kernels.append(k)
            done(k)
    return Program(plan, simple, tuple(kernels), conditions(parts, plan))


def _groups(
    parts: Kernels, plan: CompletePlan, target: Target, checked: Checked
) -> Iterator[Kernels]:
    """The kernels in their shape: one by one those of panels, which each have their own passes
    to go through; else all together.
    """

    def bounded(k: ir.Kernel) -> ir.Kernel:
        check_copies(k, plan)
        return k

    shaped = (bounded(k) for part in parts for k in shape(part, plan, target, checked))
    if plan.panel and plan.uniforms == "constant":
        yield from ((k,) for k in shaped)
    else:
        yield tuple(shaped)


def finished(
    kernels: Kernels, plan: CompletePlan, target: Target, checked: Checked = as_it_is
) -> Kernels:
    """What every kernel gets when its loops have their shape."""
    if plan.parts != 1 and not target.has_blocks:
        kernels = tuple(
            checked(sums_in_parts.NAME, sums_in_parts.apply(k, plan.parts))
            if adds_in_order(k.body)
            else k
            for k in kernels
        )
    if plan.registers:
        kernels = tuple(
            checked("register cap", register_cap.apply(k, plan.registers)) for k in kernels
        )
    kernels = tuple(checked("unused indices", dead_code.clean_loops(k)) for k in kernels)
    if plan.uniforms != "constant":  # after the map to threads, each of which loads them
        some = any(k.uniforms for k in kernels)  # a kernel that only adds partial sums has none
        kernels = tuple(
            k
            if some and not k.uniforms
            else checked("uniforms", uniform_parameters.apply(k, plan.uniforms))
            for k in kernels
        )
    # Late: no pass after it could tell which array a load belongs to.
    kernels = tuple(
        checked("layout lowering", layout_lowering.apply(k, vector_loads=target.has_blocks))
        for k in kernels
    )
    if not target.has_blocks:
        return kernels
    # After places are known in buffers: leaves of one buffer are a choice of places. SIMD loops
    # would have to gather.
    return tuple(checked("load selection", load_selection.apply(k)) for k in kernels)
