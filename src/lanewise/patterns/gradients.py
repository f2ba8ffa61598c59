"""What gradients of elements and of pairs have in common: the names that they are taken with
respect to, and cotangents as parameters.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from lanewise.derivatives.gradient import Gradient, GradientValue
from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.ir.names import own
from lanewise.language import types as t
from lanewise.launch.compiled import Call, Compiled
from lanewise.patterns.calls import Calls
from lanewise.patterns.kernels import AbstractKernel
from lanewise.patterns.no_gradient import no_second_gradient
from lanewise.patterns.variables import COTANGENT, Variable, names_of, variables
from lanewise.planning.plan import Plan
from lanewise.support.errors import ArgumentError, brief

if TYPE_CHECKING:
    from lanewise.facade import Tuning

K = TypeVar("K", bound=AbstractKernel)
# what a kernel of a gradient computes, by the place in what was requested
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


class AbstractGradient(ABC, Generic[K]):
    """What the gradients of all kernels have. _classes: what a gradient divides its names by."""

    _classes: ClassVar[str]

    def __init__(self, kernel: K, wrt: str | Iterable[str]) -> None:
        self._sought = Sought(kernel, names_of(kernel.__name__, wrt), isinstance(wrt, str))
        self.__name__ = self._sought.name

    def __repr__(self) -> str:
        return str(self._sought)

    @property
    def _kernel(self) -> K:
        return self._sought.kernel

    @property
    def wrt(self) -> tuple[str, ...]:
        """The names that it is taken with respect to."""
        return self._sought.names

    @brief
    def gradient(self, wrt: Any) -> Any:
        """Second derivatives, which there are none of: raises `ArgumentError`."""
        raise no_second_gradient(self._kernel.__name__)

    @brief
    def compile(self, *arguments: Any, plan: Plan | None = None, **named: Any) -> Compiled:
        """The kernel for these arguments, without cotangents.

        Raises `ArgumentError` where there are two kernels.
        """
        values, kernel = self._only("compile", arguments, named)
        return kernel.compile(**values, plan=plan)

    @brief
    def bind(
        self, *arguments: Any, out: Any = None, plan: Plan | None = None, **named: Any
    ) -> Call:
        """A call without cotangents with its memory bound, to run many times.

        Of one value for all elements, or targets, the result is an array with what each of them
        adds to it. Raises `ArgumentError` where there are two kernels.
        """
        values, kernel = self._only("bind", arguments, named)
        return kernel.bind(**values, out=out, plan=plan)

    @brief
    def tune(
        self, *arguments: Any, seconds: float | None = None, plan: Plan | None = None, **named: Any
    ) -> Tuning:
        """Measure plans for calls like this one, without cotangents, and use the fastest in later
        calls; see `Kernel.tune`.

        Raises `ArgumentError` where there are two kernels.
        """
        values, kernel = self._only("tune", arguments, named)
        return kernel.tune(**values, seconds=seconds, plan=plan)

    def _only(
        self, what: str, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], K]:
        """The arguments by name, and the kernel of a call that has no other one."""
        values, kernels = self._unweighed(arguments, named)
        if len(kernels) != 1:
            raise ArgumentError(
                f"{self._kernel.__name__}.gradient(...).{what}: with respect to "
                f"{', '.join(self.wrt)} it is two kernels, one {self._classes}; take the gradient "
                "with respect to one of them"
            )
        return values, kernels[0]

    @abstractmethod
    def _unweighed(
        self, arguments: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[K]]:
        """The arguments by name, and the kernels of a call without cotangents."""


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
    """What a kernel returned, by the place in what was requested."""
    several = outputs if len(asked) > 1 else (outputs,)
    return {place: output for (place, _), output in zip(asked, several, strict=True)}


def modes(gradients: Iterable[Gradient]) -> str:
    """How they were made, each way once."""
    return ", ".join(dict.fromkeys(f"{g.mode} ({g.why})" for g in gradients))
