"""A kernel as a function of PyTorch tensors that autograd differentiates."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from lanewise.interop.tensors import check_kernel, device_of, float_results, gradients, inputs_of
from lanewise.language.target import CUDA
from lanewise.support.errors import ArgumentError
from lanewise.support.installation import install


def torch_function(kernel: Any) -> Callable[..., Any]:
    """The kernel as a function of PyTorch tensors, differentiable once by autograd.

    The function is called like the kernel. A record is a mapping from its fields to tensors of
    shape (n,) or (n, components), for example `{"position": x, "mass": m}`; one and the same
    mapping for targets and sources makes them one array. Values are numbers or tensors of shape ()
    or (components,); in elementwise kernels without records they may be tensors of any shape, all
    of one. Results are tensors on the device of the arguments: views of the kernel's results, by
    DLPack. Fields are copied into records, in the default layout and in the types of the record.
    Gradients have the type of their tensors.

    Raises `ArgumentError` if PyTorch is not installed, and for anything but a pairwise or
    elementwise kernel; `CompileError` for kernels that have no gradient.
    """
    _torch()
    check_kernel("lw.torch_function", kernel)

    def function(*arguments: Any, **named: Any) -> Any:
        torch = _torch()
        inputs, tensors = inputs_of(kernel, arguments, named, lambda x: isinstance(x, torch.Tensor))
        results = _autograd().apply(inputs, device_of(inputs, tensors), *tensors)
        return results[0] if len(results) == 1 else results

    function.__name__, function.__doc__ = kernel.__name__, kernel.__doc__
    return function


def _torch() -> Any:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"lw.torch_function needs PyTorch: {install('torch')}") from error
    return torch


def _settle(devices: Iterable[Any]) -> None:
    """Wait for streams of PyTorch's own: lanewise reads tensors on the default stream, which does
    not wait for them.
    """
    cuda = _torch().cuda
    for device in {d for d in devices if d.type == CUDA.name}:
        if cuda.current_stream(device) != cuda.default_stream(device):
            cuda.current_stream(device).synchronize()


@cache
def _autograd() -> Any:
    """The class that autograd calls; made when PyTorch is there."""
    torch = _torch()
    base: Any = torch.autograd.Function

    def forward(ctx: Any, inputs: Any, device: str, *tensors: Any) -> Any:
        ctx.inputs, ctx.tensors = inputs, [(x.dtype, x.device) for x in tensors]
        _settle(d for _, d in ctx.tensors)
        ctx.arguments = inputs.arguments([x.detach() for x in tensors], device)
        results = inputs.kernel(**ctx.arguments)
        results = results if isinstance(results, tuple) else (results,)
        made = tuple(torch.from_dlpack(r) for r in results)
        ctx.floats = float_results(inputs.kernel)
        ctx.mark_non_differentiable(
            *(r for r, is_float in zip(made, ctx.floats, strict=True) if not is_float)
        )
        return made

    def backward(ctx: Any, *cotangents: Any) -> Any:
        # else what the derivative depends on would be missing in silence
        if torch.is_grad_enabled():
            raise ArgumentError(
                f"{ctx.inputs.kernel.__name__} has first derivatives only, and create_graph=True "
                "asks for those of the gradient"
            )
        _settle(d for _, d in ctx.tensors)
        weights = [
            c.contiguous() if is_float else None
            for c, is_float in zip(cotangents, ctx.floats, strict=True)
        ]
        found = gradients(ctx.inputs, ctx.arguments, ctx.needs_input_grad[2:], weights)
        return None, None, *(_tensor(d, *kind) for d, kind in zip(found, ctx.tensors, strict=True))

    def _tensor(derivative: Any, dtype: Any, device: Any) -> Any:
        if derivative is None:
            return None
        shared = hasattr(derivative, "__dlpack__") and derivative.ndim
        made = (
            torch.from_dlpack(derivative)
            if shared
            else torch.as_tensor(derivative, dtype=torch.float64)
        )
        return made.to(dtype=dtype, device=device)

    return type(
        "LanewiseFunction",
        (base,),
        {"forward": staticmethod(forward), "backward": staticmethod(backward)},
    )
