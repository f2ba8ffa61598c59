"""A function of one site: its signature, what it computes in, its IR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lanewise import types as t
from lanewise.errors import ArgumentError
from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.surroundings import Surroundings
from lanewise.lattices.base import Lattice
from lanewise.patterns.sitewise.build_arguments import Update
from lanewise.patterns.sitewise.call_values import OUTFLOW_SPEED
from lanewise.types import Scalar

CALL_ARGUMENTS = frozenset({"self", "sites", "plan", "steps", "walls", "weights", OUTFLOW_SPEED})
"""What calls, runs and forces take besides the values of a function: no value can have one of these names."""


@dataclass(eq=False)
class SiteFunction:
    """A user's function of one site, read when it is first needed. `version` counts how often it was found to have changed."""

    python: Callable[..., Any]
    lattice: Lattice
    number: int = 0
    version: int = 0
    _seen: Surroundings | None = None
    _signature: Signature | None = None
    _update: Update | None = None

    @property
    def name(self) -> str:
        return self.python.__name__

    @property
    def signature(self) -> Signature:
        self._signature = self._signature or _checked(read_signature(self.python, populations=True))
        return self._signature

    @property
    def populations(self) -> str:
        return next(iter(self.signature.populations))

    @property
    def real(self) -> Scalar:
        """The type that it computes in."""
        return self.signature.populations[self.populations]

    @property
    def parameters(self) -> dict[str, t.ValueType]:
        """The parameters behind the populations."""
        found: dict[str, t.ValueType] = {}
        for name, kind in self.signature.parameters.items():
            if not isinstance(kind, t.Scalar | t.Vector):
                raise ArgumentError(f"{self.name}: {name!r} is a record; sitewise functions take scalars and vectors")
            found[name] = kind
        return found

    @property
    def update(self) -> Update:
        if self._update is None:
            self._seen = Surroundings(self.signature.source)
            lowered: Lowered = lower_function(self.signature, mutable=self.populations, lattice=self.lattice)
            self._update = Update(self.number, self.name, lowered, self.populations)
        return self._update

    def notice(self) -> None:
        """Start anew where a helper or a constant stands for something else than it did."""
        if self._seen is not None and not self._seen.same():
            self._signature = self._update = self._seen = None
            self.version += 1


def _checked(signature: Signature) -> Signature:
    """Values are given by name, beside what the call itself takes."""
    source = signature.source
    for parameter in source.tree.args.args:
        if parameter.arg in CALL_ARGUMENTS and parameter.arg in signature.parameters:
            raise source.error(
                f"{parameter.arg!r} is an argument of the call itself",
                parameter,
                found=f"a value of that name of {source.name}",
                wanted="another name",
            )
    return signature
