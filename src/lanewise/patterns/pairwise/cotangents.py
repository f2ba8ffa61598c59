"""The targets of a gradient with their cotangents: a copy of the fields that are read, made by one
elementwise kernel.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from lanewise.frontend.function import Lowered, Signature
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.record import Field, Record, make_class
from lanewise.language.values import f64
from lanewise.launch.task_list import REMEDY
from lanewise.layouts import SoAoAS, packed
from lanewise.patterns.elementwise.kernel import Elementwise
from lanewise.records.arrays import RecordArray
from lanewise.records.same_elements import stand_for
from lanewise.records.storage import Storage
from lanewise.runtime.device import get_device
from lanewise.runtime.lease import Lease
from lanewise.runtime.memory import Need, allocate, require_together
from lanewise.support.errors import ArgumentError

COPY, ORIGINAL = "copy", "original"
# bytes of a copy that is kept for later calls; next to more the host's time is little
MOST_HELD = 1 << 20
MOST_IDLE, MOST_KINDS = 2, 4


def _unwritten(value: f64) -> f64:
    """Instead of a user's function: the kernel that copies is written as IR."""
    return value


@dataclass(frozen=True, slots=True)
class _Copying:
    """The kernel, a `Derived`: all leaves of some fields of `original`, and the cotangents, go into
    `copy`.
    """

    name: str
    original: Record
    copy: Record
    fields: tuple[Field, ...]
    cotangents: tuple[Field, ...]

    def signature(self, written: Signature, /) -> Signature:
        values = {f.name: f.type for f in self.cotangents}
        return replace(
            written,
            parameters={COPY: self.copy, ORIGINAL: self.original, **values},
            results=[],
            reductions=(),
        )

    def lowered(self, written: Signature, lowered: Lowered, /) -> Lowered:
        del written
        pairs = [
            (leaf, f"{ORIGINAL}.{leaf}", f)
            for f in self.fields
            for leaf in t.leaves(f.name, f.type)
        ]
        pairs += [(leaf, leaf, f) for f in self.cotangents for leaf in t.leaves(f.name, f.type)]
        to = tuple(
            ir.Parameter(f"{COPY}.{leaf}", t.scalar_of(f.type), mutable=True)
            for leaf, _, f in pairs
        )
        source = tuple(ir.Parameter(name, t.scalar_of(f.type)) for _, name, f in pairs)
        body = tuple(
            ir.Assign(a.name, ir.Local(b.name, b.type)) for a, b in zip(to, source, strict=True)
        )
        return Lowered(
            ir.Function(self.name, (*to, *source), (), body, lowered.function.location), (), False
        )


@dataclass(frozen=True, slots=True)
class _Held:
    """A copy that later calls write anew, if it is `small`: a new one costs the host more than all
    the rest of a call.

    lease: one use at a time, whichever stream it is on.
    """

    copy: RecordArray
    lease: Lease
    small: bool


class Cotangent:
    """Makes copies of targets. kernel: whose gradient it is for; fields: the names of those that
    are copied.
    """

    def __init__(
        self,
        kernel: str,
        original: Record,
        copy: Record,
        fields: frozenset[str],
        cotangents: tuple[str, ...],
    ) -> None:
        self._kernel = kernel
        self._record = copy
        self._class = make_class(copy, __name__, copy.name, None)
        copied = tuple(f for f in original if f.name in fields)
        added = tuple(f for f in copy if f.name in cotangents)
        self._copying = Elementwise(
            _unwritten, _Copying(f"{kernel}_cotangents", original, copy, copied, added)
        )
        self._held: dict[Any, list[_Held]] = {}

    @contextmanager
    def beside(
        self,
        target: RecordArray,
        cotangents: Mapping[str, Any],
        made: Iterable[Need] = (),
        *,
        parts: bool,
    ) -> Generator[RecordArray]:
        """The copy, in the layout of the targets without the steps of a view, or one like it where
        that one names groups of fields.

        parts: whether the targets are a part of the sources, or the other way round: then it
        matters whose elements the copy has. It holds until the end of the context. made: what the
        call is about to allocate besides. Raises `ArgumentError` for cotangents that do not fit the
        targets, `DeviceError` for what does not fit the memory.
        """
        idle = self._idle(len(target), target.layout, target.device) if not parts else []
        try:
            held = idle.pop()
        except IndexError:
            held = self._make(target, made)
            if parts:  # its own copy: repeated calls know arrays by what they are
                stand_for(held.copy, target)
        try:
            with held.lease:
                try:
                    self._copying(**{COPY: held.copy, ORIGINAL: target}, **cotangents)
                except ArgumentError:
                    self._explain(held.copy, cotangents)
                    raise
                yield held.copy
        finally:
            if held.small and len(idle) < MOST_IDLE:
                idle.append(held)

    def _idle(self, *kind: Any) -> list[_Held]:
        """Copies of this kind that no call uses now."""
        if kind not in self._held and len(self._held) >= MOST_KINDS:
            self._held.clear()
        return self._held.setdefault(kind, [])

    def _make(self, target: RecordArray, made: Iterable[Need]) -> _Held:
        layout = packed(target.layout)
        layout = SoAoAS() if isinstance(layout, SoAoAS) else layout
        nbytes = layout.arrange(self._record.leaves).nbytes(len(target))
        what = f"{self._record.name} with cotangents"
        copy = Need(target.device, nbytes, f"{len(target):,} {what}")
        require_together(f"a call of {self._kernel}.gradient", (copy, *made), REMEDY)
        data = allocate(target.device, nbytes, copy.what, zeroed=False)
        storage = Storage.over(self._record, len(target), layout, target.device, data)
        return _Held(
            RecordArray(storage, self._class),
            get_device(target.device).lease(f"the {what} of {self._kernel}"),
            nbytes <= MOST_HELD,
        )

    def _explain(self, result: RecordArray, cotangents: Mapping[str, Any]) -> None:
        """Say what is wrong with the cotangents, as a field says it."""
        for n, value in cotangents.items():
            try:
                setattr(result, n, value)
            except ArgumentError as error:
                raise ArgumentError(f"{self._kernel}.gradient: {error}") from error
