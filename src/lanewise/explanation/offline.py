"""The explanation of a kernel of which nothing but the kernel is at hand: no arrays, and for CUDA
no GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lanewise.explanation.calls import compile_arguments
from lanewise.explanation.compiled import Offline, find_model, is_here
from lanewise.explanation.offline_sites import compile_sites
from lanewise.explanation.samples import plain_values, refused, unfilled_arguments
from lanewise.explanation.searches import check_near, compile_over_search
from lanewise.explanation.shapes import Kernel, Shape
from lanewise.layouts import Layout
from lanewise.patterns.elementwise.gradient import ElementwiseGradient
from lanewise.patterns.gradients import AbstractGradient
from lanewise.patterns.pairwise.gradient import PairwiseGradient
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.patterns.sitewise.lattice_kernel import LatticeKernel
from lanewise.planning.plan import Plan
from lanewise.support.errors import ArgumentError, InputError

Gradient = PairwiseGradient | ElementwiseGradient


def explained(
    kernel: Kernel | LatticeKernel | Gradient,
    count: int,
    device: str,
    *,
    arch: str | None = None,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    near: float | None = None,
    recalled: bool = False,
) -> tuple[str, tuple[Offline, ...]]:
    """A kernel of any pattern as `compile_offline` has it, and what is known of all of it: of its
    search, or of the kernels that a gradient is made of. near: see `compile_over_search`.
    """
    whole: dict[str, Any] = {
        "arch": arch, "layout": layout, "values": values, "shapes": shapes, "recalled": recalled,
    }  # fmt: skip
    check_near(kernel, near)
    if isinstance(kernel, AbstractGradient):
        return _of_gradient(kernel, count, device, **whole)
    if isinstance(kernel, Pairwise) and kernel.searched is not None:
        return compile_over_search(kernel, count, device, near=near, **whole)
    return "", (compile_offline(kernel, count, device, **whole),)


def _of_gradient(
    gradient: Gradient, count: int, device: str, **whole: Any
) -> tuple[str, tuple[Offline, ...]]:
    """The kernels of a gradient, for the arguments of the kernel that it is taken of."""
    kernel = gradient._kernel  # pyright: ignore[reportPrivateUsage]
    named = {n: whole[n] for n in ("values", "shapes", "layout")}
    samples = unfilled_arguments(kernel, count, device, **named)
    _, kernels = gradient._unweighed((), samples.named)  # pyright: ignore[reportPrivateUsage]
    made = [explained(k, count, device, **whole) for k in kernels]
    heading = heading_of(gradient, len(kernels))
    own = [text for text, _ in made if text]
    return "\n".join((heading, *own[:1])), tuple(o for _, offline in made for o in offline)


def heading_of(gradient: Gradient, kernels: int) -> str:
    """What a gradient of so many kernels is."""
    of = gradient._kernel.__name__  # pyright: ignore[reportPrivateUsage]
    number = f"{kernels} kernels" if kernels > 1 else "one kernel"
    return f"the gradient of {of} with respect to {', '.join(gradient.wrt)}: {number}"


def compile_offline(
    kernel: Kernel | LatticeKernel,
    count: int,
    device: str,
    *,
    arch: str | None = None,
    layout: Layout | None = None,
    values: Mapping[str, float] | None = None,
    shapes: Mapping[str, Shape] | None = None,
    requested: Plan | None = None,
    recalled: bool = False,
) -> Offline:
    """`kernel` for about `count` elements on "cpu" or "cuda", for all records in one layout
    (default: the device's). values, shapes: what is given of a made-up call, by name (see
    `explanation/shapes.py`). recalled: with what tune() found, as `compile_call` has it.

    On "cuda" `arch` names a typical device of that architecture; without it the GPU of this machine
    is meant, or an NVIDIA H200 where there is none. Raises `DeviceError` for an unknown
    architecture, `InputError` for wrong values and for sizes that do not go together.
    """
    if count < 1:
        raise InputError(f"{count} elements requested; wanted at least 1")
    if isinstance(kernel, LatticeKernel):
        model = find_model(device, arch)
        here = recalled and is_here(device, arch)
        return compile_sites(kernel, count, device, model, layout, values, shapes, recalled=here)
    samples = unfilled_arguments(kernel, count, device, values=values, shapes=shapes, layout=layout)
    model = find_model(device, arch)
    try:
        made = compile_arguments(
            kernel,
            (),
            samples.named,
            device,
            model,
            requested=requested,
            recalled=recalled and is_here(device, arch),
            made_up=True,
        )
    except ArgumentError as error:
        raise refused(error, samples) from error
    shapes_of = samples.shapes.made_up
    subject = replace(made.subject, invented=plain_values(samples), shapes=shapes_of)
    return replace(made, subject=subject)
