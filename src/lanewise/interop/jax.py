"""A kernel as a function of JAX arrays that `jax.grad` differentiates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lanewise.interop.tensors import (
    Inputs,
    check_kernel,
    device_of,
    float_results,
    gradients,
    inputs_of,
)
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.launch.arguments import axes_of, shape_of_result
from lanewise.patterns.pairwise.kernel import Pairwise
from lanewise.runtime import memory
from lanewise.support.errors import ArgumentError
from lanewise.support.installation import install


def jax_function(kernel: Any) -> Callable[..., Any]:
    """The kernel as a function of JAX arrays, differentiable once in reverse mode (`jax.grad`,
    `jax.vjp`), also within `jax.jit`.

    The function is called like the kernel. A record is a mapping from its fields to arrays of shape
    (n,) or (n, components), for example `{"position": x, "mass": m}`; one and the same mapping for
    targets and sources makes them one array. Values are numbers or arrays of shape () or
    (components,); in elementwise kernels without records they may be arrays of any shape, all of
    one. Outside of `jax.jit` arrays come and go by DLPack on their device; within it calls go
    through the host (`jax.pure_callback`). Fields are copied into records, in the default layout
    and in the types of the record.

    Raises `ArgumentError` if JAX is not installed, for anything but a pairwise or elementwise
    kernel, and for kernels with float64 results if `jax_enable_x64` is off; `CompileError` for
    kernels that have no gradient.
    """
    _jax()
    check_kernel("lw.jax_function", kernel)

    def function(*arguments: Any, **named: Any) -> Any:
        jax = _jax()
        _check_precision(kernel)
        inputs, arrays = inputs_of(kernel, arguments, named, lambda x: isinstance(x, jax.Array))
        results = _differentiable(inputs)(*arrays)
        return results[0] if len(results) == 1 else results

    function.__name__, function.__doc__ = kernel.__name__, kernel.__doc__
    return function


def _jax() -> Any:
    try:
        import jax  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(f"lw.jax_function needs JAX: {install('jax')}") from error
    return jax


def _check_precision(kernel: Any) -> None:
    if not _jax().config.jax_enable_x64 and any(
        t.scalar_of(k) in (t.F64, t.I64) for k in kernel.lowered.results
    ):
        raise ArgumentError(
            f"{kernel.__name__} has results of 64 bits, which JAX cuts to 32: "
            "jax.config.update('jax_enable_x64', True) "
            "before anything else"
        )


def _differentiable(inputs: Inputs) -> Callable[..., Any]:
    """A function of the arrays alone, with its own rule for reverse mode."""
    jax = _jax()
    floats = float_results(inputs.kernel)

    def run(*arrays: Any) -> tuple[Any, ...]:
        results = inputs.kernel(**inputs.arguments(arrays, device_of(inputs, arrays)))
        return results if isinstance(results, tuple) else (results,)

    def call(*arrays: Any) -> tuple[Any, ...]:
        return _through(run, _result_shapes(inputs, arrays), arrays)

    def forward(*arrays: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return call(*arrays), arrays

    def backward(arrays: tuple[Any, ...], cotangents: Sequence[Any]) -> tuple[Any, ...]:
        smooth = [
            n
            for n, p in enumerate(inputs.places)
            if p.wrt and np.issubdtype(arrays[n].dtype, np.floating)
        ]
        needed = [n in smooth for n in range(len(arrays))]
        weights = [c for c, is_float in zip(cotangents, floats, strict=True) if is_float]

        def derivatives(*given: Any) -> tuple[Any, ...]:
            those, ones = given[: len(arrays)], iter(given[len(arrays) :])
            weighed = [next(ones) if is_float else None for is_float in floats]
            found = gradients(
                inputs, inputs.arguments(those, device_of(inputs, those)), needed, weighed
            )
            return tuple(_as(found[n], arrays[n].dtype) for n in smooth)

        shapes = tuple(jax.ShapeDtypeStruct(arrays[n].shape, arrays[n].dtype) for n in smooth)
        made = (
            dict(zip(smooth, _through(derivatives, shapes, (*arrays, *weights)), strict=True))
            if smooth
            else {}
        )
        return tuple(made[n] if n in made else _zero(a) for n, a in enumerate(arrays))

    function = jax.custom_vjp(call)
    function.defvjp(forward, backward)
    return function


def _through(
    function: Callable[..., tuple[Any, ...]], shapes: tuple[Any, ...], arrays: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Run a function of arrays now, or, where they are traced, through the host when they are
    there.
    """
    jax = _jax()
    if not any(isinstance(a, jax.core.Tracer) for a in arrays):
        return tuple(_array(r) for r in function(*arrays))

    def on_host(*given: Any) -> tuple[Any, ...]:
        results = function(*map(np.asarray, given))
        return tuple(
            np.asarray(r.get() if hasattr(r, "get") else r, s.dtype)
            for r, s in zip(results, shapes, strict=True)
        )

    return jax.pure_callback(on_host, shapes, *arrays, vmap_method="sequential")


def _result_shapes(inputs: Inputs, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    jax, kernel = _jax(), inputs.kernel
    axes = _axes(inputs, arrays)
    return tuple(jax.ShapeDtypeStruct(*shape_of_result(k, 0, axes)) for k in kernel.lowered.results)


def _axes(inputs: Inputs, arrays: tuple[Any, ...]) -> tuple[int, ...]:
    """Of the elements that have a result: one of targets or records, those of the arrays of an
    elementwise kernel without records.
    """
    parameters = inputs.kernel.signature.parameters
    target = next((n for n, k in parameters.items() if isinstance(k, Record)), "")
    for place, a in zip(inputs.places, arrays, strict=True):
        kind = parameters[place.parameter]
        if place.parameter == target:
            return (int(a.shape[0]),)
        if not isinstance(kind, Record) and (axes := axes_of(a.shape, kind)):
            return axes
    for n, c in inputs.constants.items():
        if isinstance(kind := parameters[n], Record):
            if n == target or not isinstance(inputs.kernel, Pairwise):
                return (len(next(iter(c.values()))) if isinstance(c, dict) else len(c),)
        elif axes := axes_of(np.shape(c), kind):
            return axes
    raise ArgumentError(
        f"{inputs.kernel.__name__}: at least one argument must be an array with a value for each "
        "element; .reshape(1) makes an array of one value"
    )


def _array(result: Any) -> Any:
    jnp = _jax().numpy
    return (
        jnp.from_dlpack(result)
        if hasattr(result, "__dlpack__") and result.ndim
        else jnp.asarray(result)
    )


def _as(derivative: Any, dtype: Any) -> Any:
    if not hasattr(derivative, "astype"):
        return np.asarray(derivative, dtype)
    with memory.on(memory.device_of(derivative)):
        return derivative.astype(dtype)


def _zero(a: Any) -> Any:
    """The derivative with respect to what nothing depends on."""
    jax = _jax()
    smooth = np.issubdtype(a.dtype, np.floating)
    return jax.numpy.zeros_like(a) if smooth else np.zeros(a.shape, jax.dtypes.float0)
