"""The gradient of a function of one element: an elementwise kernel again, and its total for what is
one value for all elements.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lanewise.derivatives.gradient import Cotangents, Gradient, GradientValue, gradient
from lanewise.frontend.function import Lowered, Signature
from lanewise.language import types as t
from lanewise.launch.arguments import name_arguments
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.patterns.elementwise.totals import sum_
from lanewise.patterns.gradients import (
    AbstractGradient,
    Places,
    by_place,
    cotangent_kinds,
    derived_function,
    gradient_name,
    modes,
)
from lanewise.patterns.mesh_calls import mesh_of
from lanewise.patterns.variables import cotangent_leaves, cotangents_of
from lanewise.planning.plan import Plan
from lanewise.support.articles import an
from lanewise.support.attributes import sealed
from lanewise.support.errors import ArgumentError, brief


@dataclass(frozen=True, slots=True)
class _Part:
    """A kernel of a gradient, a `Derived`. asked: by the place in what the user requested; total:
    they are added up over the elements.
    """

    kernel: str
    asked: Places
    weighed: bool
    total: bool

    @property
    def name(self) -> str:
        return gradient_name(self.kernel)

    def gradient(self, lowered: Lowered) -> Gradient:
        """The function, and how it was made."""
        none = (None,) * len(lowered.function.results)
        cotangents = Cotangents(cotangent_leaves(lowered) if self.weighed else none)
        return gradient(lowered.function, self.name, [a for _, a in self.asked], cotangents, None)

    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered:
        del written
        return derived_function(self.gradient(lowered).function, self.asked)

    def signature(self, written: Signature, /) -> Signature:
        """The cotangents are parameters after the others."""
        added = cotangent_kinds(written.results) if self.weighed else {}
        return replace(
            written,
            parameters={**written.parameters, **added},
            results=[a.kind for _, a in self.asked],
            reductions=(),
        )


@sealed()
class ElementwiseGradient(AbstractGradient[Elementwise]):
    """The derivative of the sum over all elements of cotangent_i * result_i.

    It is called with the arguments of the kernel, and `cotangent=`, an array like the kernel's
    result or one value for all (a tuple of them for several results, None for one that does not
    count; without it every cotangent is 1). The result is an array like the field or the array that
    it is taken with respect to; for what is one value for all elements it is a number (or an array
    of its components), added up in float64. Several names give a tuple.
    """

    _classes = "for each element and one for totals"

    def __init__(self, kernel: Elementwise, wrt: str | Iterable[str]) -> None:
        super().__init__(kernel, wrt)
        self._sought.check_words(kernel.signature.parameters, "parameter")
        for v in self._sought.variables():
            if len(v.records) > 1:
                raise ArgumentError(
                    f"{kernel.__name__}.gradient: {' and '.join(v.records)} have {an(v.field)} "
                    f"each; name one: wrt={f'{v.records[0]}.{v.field}'!r}"
                )

    def __reduce__(self) -> tuple[Any, ...]:
        return elementwise_gradient, (self._kernel, self._sought.wrt)

    @brief
    def __call__(
        self, *arguments: Any, cotangent: Any = None, plan: Plan | None = None, **named: Any
    ) -> Any:
        """The derivatives, as the class says."""
        values, parts = self._prepared(arguments, named, weighed=cotangent is not None)
        if cotangent is not None:
            values |= cotangents_of(self._kernel.__name__, self._kernel.lowered, cotangent)
        results: dict[int, Any] = {}
        for part, kernel in parts:
            if not part.total:
                results |= by_place(part.asked, kernel(**values, plan=plan))
            elif mesh_of(values.values()) is None:
                results |= by_place(part.asked, kernel.sum(**values))
            else:  # no sum of a call runs on a mesh: its results are added up
                outputs = by_place(part.asked, kernel(**values))
                results |= {place: sum_(output) for place, output in outputs.items()}
        return self._sought.ordered(results)

    def mode(self, *arguments: Any, **named: Any) -> str:
        """How the derivatives of such a call are made: "reverse (6 scalar inputs)", or "forward"
        with its reason.
        """
        _, parts = self._prepared(arguments, named, weighed=False)
        gradients = [part.gradient(self._kernel.lowered) for part, _ in parts]
        return modes(gradients)

    # ------------------------------------------------------------ what a call is made of

    def _prepared(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any], *, weighed: bool
    ) -> tuple[dict[str, Any], tuple[tuple[_Part, Elementwise], ...]]:
        """The arguments by name, and the kernels of such a call."""
        values = name_arguments(self._kernel.signature, arguments, named)
        totals = tuple(
            not v.records and not _is_array(values[v.name], v.kind)
            for v in self._sought.variables()
        )
        kept, key = self._sought.kept(), ("gradient", self._sought.names, totals, weighed)
        if key not in kept:
            kept[key] = tuple(self._parts(totals, weighed))
        return values, kept[key]

    def _unweighed(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Elementwise]]:
        values, parts = self._prepared(arguments, named, weighed=False)
        return values, [kernel for _, kernel in parts]

    def _parts(
        self, totals: tuple[bool, ...], weighed: bool
    ) -> Iterable[tuple[_Part, Elementwise]]:
        for total in sorted(set(totals)):
            chosen = [(n, v) for n, v in enumerate(self._sought.variables()) if totals[n] == total]
            asked = tuple(
                (n, GradientValue(v.leaves(v.records[0]) if v.records else v.leaves(), v.kind))
                for n, v in chosen
            )
            part = _Part(self._kernel.__name__, asked, weighed, total)
            yield part, Elementwise(self._kernel.python, part)


def elementwise_gradient(kernel: Elementwise, wrt: str | Iterable[str]) -> ElementwiseGradient:
    """What `kernel.gradient(wrt)` gives."""
    return ElementwiseGradient(kernel, wrt)


def _is_array(value: Any, kind: t.ValueType) -> bool:
    """Whether an argument has a value for each element.

    What is neither is refused when the kernel is called.
    """
    try:
        dimensions = value.ndim if isinstance(getattr(value, "ndim", None), int) else np.ndim(value)
    except Exception:  # of the user's class, or of NumPy
        return False
    return dimensions > (1 if isinstance(kind, t.Vector) else 0)
