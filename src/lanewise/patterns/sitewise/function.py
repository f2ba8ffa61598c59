"""A function of one site: its signature, what it computes in, its IR, and the values that it takes:
one for all sites, or one per site.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Set
from dataclasses import dataclass
from typing import Any

from lanewise.frontend.function import Lowered, Signature, lower_function, read_signature
from lanewise.frontend.source import Surroundings
from lanewise.language import types as t
from lanewise.language.lattices.base import Lattice
from lanewise.language.types import F32, Scalar
from lanewise.patterns.sitewise.builder import Update
from lanewise.patterns.sitewise.values import OUTFLOW_SPEED
from lanewise.patterns.tables.arguments import Tables
from lanewise.support.errors import ArgumentError

CALL_ARGUMENTS = frozenset(
    {"self", "sites", "plan", "checks", "steps", "walls", "weights", OUTFLOW_SPEED}
)
"""What calls, runs and forces take besides the values of a function.

No value can have one of these names.
"""
# besides the values that a wall has of fields
_WALL_ARGUMENTS = frozenset({"number", "name", "velocity"})
# besides what the fields of a stencil begin with
_SITES_ARGUMENTS = frozenset({"shape", "mask", "edges", "storage", "layout", "device"})


@dataclass(eq=False)
class SiteFunction:
    """A user's function of one site, read when it is first needed.

    `version` counts how often it was found to have changed.
    """

    python: Callable[..., Any]
    lattice: Lattice
    number: int = 0
    stencil: bool = False
    looks: bool = False  # an observer of a stencil returns what it likes
    version: int = 0
    _seen: Surroundings | None = None
    _signature: Signature | None = None
    _update: Update | None = None

    @property
    def name(self) -> str:
        return self.python.__name__

    @property
    def signature(self) -> Signature:
        if self._signature is None:
            signature = read_signature(
                self.python, populations=not self.stencil, fields=True, tables=True
            )
            self._signature = (
                _checked_stencil(signature)
                if self.stencil and not self.looks
                else _checked(signature)
            )
        return self._signature

    @property
    def fields(self) -> dict[str, Scalar]:
        """The parameters that are read at neighbours."""
        return self.signature.fields

    @property
    def populations(self) -> str:
        return next(iter(self.signature.populations), "")

    @property
    def real(self) -> Scalar:
        """The type that it computes in."""
        if self.stencil:
            return next(iter(self.fields.values()), F32)
        return self.signature.populations[self.populations]

    @property
    def parameters(self) -> dict[str, t.ValueType]:
        """The parameters after the populations."""
        kinds: dict[str, t.ValueType] = {}
        for name, kind in self.signature.parameters.items():
            if not isinstance(kind, t.Scalar | t.Vector):
                raise ArgumentError(
                    f"{self.name}: {name!r} is a record; sitewise functions take scalars and "
                    "vectors"
                )
            kinds[name] = kind
        return kinds

    @property
    def elements(self) -> frozenset[str]:
        """The parameters that `lw.index_of` takes: what stands for the site itself."""
        return frozenset(self.fields) if self.stencil else frozenset((self.populations,))

    @property
    def tables(self) -> Tables:
        """The parameters that are tables."""
        return self.signature.arrays

    @property
    def update(self) -> Update:
        if self._update is None:
            self._seen = Surroundings(self.signature.source)
            lowered: Lowered = lower_function(
                self.signature,
                mutable=self.populations,
                lattice=self.lattice,
                elements=self.elements,
            )
            self._update = Update(self.number, self.name, lowered, self.populations)
        return self._update

    def notice(self) -> int:
        """Start anew where a helper or a constant stands for something else than it did; the
        version that it has now.
        """
        if self._seen is not None and not self._seen.same():
            self._signature = self._update = self._seen = None
            self.version += 1
        return self.version


def _checked_stencil(signature: Signature) -> Signature:
    """The fields come first: those that the results replace, then those that are only read."""
    source, arguments = signature.source, signature.source.tree.args.args
    first = arguments[0] if arguments else source.tree
    if not arguments or arguments[0].arg not in signature.fields:
        raise source.error(
            f"{source.name} does not take a field of its sites first",
            first,
            found=ast.unparse(arguments[0]) if arguments else "no parameter",
            wanted="u: lw.Field[lw.f32] (or lw.Field[lw.f64])",
        )
    kinds = set(signature.fields.values())
    if len(kinds) > 1:
        raise source.error(
            "the fields of a stencil have one precision",
            first,
            found=", ".join(f"{n}: {k}" for n, k in signature.fields.items()),
            wanted="lw.Field[lw.f32] for all, or lw.Field[lw.f64]",
        )
    results, real = signature.results or [], next(iter(kinds))
    if not results or len(results) > len(signature.fields) or any(r != real for r in results):
        names = list(signature.fields)
        raise source.error(
            f"{source.name} returns the next value of each field that it changes",
            source.tree.returns or source.tree,
            found=f"-> {', '.join(map(str, results)) or 'nothing'}, of the fields "
            f"{', '.join(names)}",
            wanted=f"-> lw.{real}"
            if len(names) == 1
            else f"-> tuple[lw.{real}, ...] with one for each of the first fields",
        )
    _refuse(
        signature,
        _SITES_ARGUMENTS & set(list(signature.fields)[: len(results)]),
        "an argument of sites()",
    )
    return _checked(signature)


def _checked(signature: Signature) -> Signature:
    """Values are given by name, besides what the call itself takes, and fields of walls besides
    what a wall takes.
    """
    values = signature.parameters.keys() | signature.fields.keys() | signature.arrays.keys()
    _refuse(signature, CALL_ARGUMENTS & values, "an argument of the call itself")
    of_walls = _WALL_ARGUMENTS if signature.populations else _WALL_ARGUMENTS - {"velocity"}
    _refuse(signature, of_walls & signature.fields.keys(), "an argument of wall()")
    return signature


def _refuse(signature: Signature, taken: Set[str], why: str) -> None:
    """Raise `CompileError` for the first parameter whose name is taken."""
    source = signature.source
    for parameter in source.tree.args.args:
        if parameter.arg in taken:
            raise source.error(
                f"{parameter.arg!r} is {why}",
                parameter,
                found=f"a {'field' if parameter.arg in signature.fields else 'value'} of that name "
                f"of {source.name}",
                wanted="another name",
            )
