"""What gradients of elements and of pairs have in common: the names that they are taken with
respect to, and cotangents as parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from lanewise.derivatives.gradient import Gradient, GradientValue
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language import types as t
from lanewise.patterns.calls import Calls
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.variables import COTANGENT, Variable, names_of, variables
from lanewise.support.errors import ArgumentError

K = TypeVar("K", bound=AbstractKernel)
# what a kernel of a gradient computes, by the place in what was asked for
Places = tuple[tuple[int, GradientValue], ...]


@dataclass(frozen=True, slots=True)
class Sought(Generic[K]):
    """The kernel that is differentiated, and with respect to what. single: one name was given, not
    several.
    """

    kernel: K
    names: tuple[str, ...]
    single: bool

    def __str__(self) -> str:
        return f"<the gradient of {self.kernel!r} with respect to {', '.join(self.names)}>"

    @property
    def name(self) -> str:
        return gradient_name(self.kernel.__name__)

    @property
    def wrt(self) -> str | tuple[str, ...]:
        """As it was given."""
        return self.names[0] if self.single else self.names

    @property
    def calls(self) -> Calls:
        """Those of the kernel itself."""
        return self.kernel._calls  # pyright: ignore[reportPrivateUsage]

    def kept(self) -> dict[Any, Any]:
        """What is kept until the function, or what it uses, stands for something else."""
        self.calls.notice()
        return self.calls.kept

    def variables(self) -> tuple[Variable, ...]:
        """What the names stand for; raises `ArgumentError` and `CompileError` as
        `patterns.variables` does.
        """
        kept, key = self.kept(), ("variables", self.names)
        if key not in kept:
            kept[key] = variables(self.names, self.kernel.signature, self.kernel.lowered)
        return kept[key]

    def check_words(self, words: Iterable[str], what: str) -> None:
        """Refuse names that begin as those of cotangents do."""
        if any(n.startswith(COTANGENT) for n in words):
            raise ArgumentError(
                f"{self.kernel.__name__}.gradient: 'cotangent' is the keyword of its calls; rename "
                f"the {what} of that name"
            )

    def ordered(self, results: Mapping[int, Any]) -> Any:
        """What a call returns: the only derivative, or a tuple of them in the order of the
        names.
        """
        every = tuple(results[n] for n in range(len(self.names)))
        return every[0] if self.single else every


def sought(kernel: K, wrt: str | Iterable[str]) -> Sought[K]:
    """Raises `ArgumentError` for names that are none, for none and for one that comes twice."""
    return Sought(kernel, names_of(kernel.__name__, wrt), isinstance(wrt, str))


def gradient_name(kernel: str) -> str:
    """The name of a gradient, and of the kernels that it is made of."""
    return f"{kernel}_gradient"


def cotangent_kinds(results: list[t.ValueType] | None) -> dict[str, t.ValueType]:
    """The cotangents of a function's results by name: those of floats, numbered where there are
    several results.
    """
    single = len(results or []) == 1
    named = (
        (COTANGENT if single else f"{COTANGENT}{n}", kind) for n, kind in enumerate(results or [])
    )
    return {n: kind for n, kind in named if t.scalar_of(kind).is_float}


def derived_function(function: ir.Function, asked: Places) -> Lowered:
    """A gradient's function with the types of its results."""
    same = any(p.name == own("same") for p in function.parameters)
    return Lowered(function, tuple(a.kind for _, a in asked), same)


def by_place(asked: Places, outputs: Any) -> dict[int, Any]:
    """What a kernel returned, by the place in what was asked for."""
    several = outputs if len(asked) > 1 else (outputs,)
    return {place: output for (place, _), output in zip(asked, several, strict=True)}


def modes(gradients: Iterable[Gradient]) -> str:
    """How they were made, each way once."""
    return ", ".join(dict.fromkeys(f"{g.mode} ({g.why})" for g in gradients))
