"""The sentences about kernels that are not differentiated."""

from __future__ import annotations

from lanewise.support.errors import ArgumentError


def no_gradient(kernel: str, pattern: str) -> ArgumentError:
    """The error about a pattern whose kernels have no gradient."""
    return ArgumentError(
        f"{kernel} is a {pattern} kernel, and lanewise differentiates functions of pairs and of "
        "elements; write the part that depends on "
        "parameters as an @lw.pairwise or @lw.elementwise function"
    )


def no_second_gradient(kernel: str) -> ArgumentError:
    """The error about the gradient of a gradient."""
    return ArgumentError(
        f"{kernel}.gradient(...).gradient: there are no second derivatives; write the first one as "
        "a separate kernel, which has a "
        "gradient, or take differences of gradients"
    )
