"""What both kinds of kernel need to become runnable."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from lanewise.frontend.function import Lowered
from lanewise.ir import nodes as ir
from lanewise.language import types as t
from lanewise.language.record import Record
from lanewise.language.target import Machine, target_of
from lanewise.language.types import Scalar
from lanewise.launch.executable import Executable, build_executable, switches_of
from lanewise.launch.kept_programs import built
from lanewise.launch.task_list import BoundArray
from lanewise.layouts import Layout
from lanewise.planning.plan import CompletePlan, Plan
from lanewise.records.arrays import RecordArray, storage_of
from lanewise.records.binding import places_of, side_of
from lanewise.records.placement import RecordPlacement
from lanewise.records.storage import Storage
from lanewise.records.two_sides import EVERY, MemorySide, bits_of, bits_of_leaves
from lanewise.runtime.device import get_device
from lanewise.support.errors import ArgumentError


def machine_of(device: str) -> Machine:
    """What default plans ask of a device."""
    return get_device(device).machine()


def index_type(device: str) -> Scalar:
    """32 bits on a GPU, where 64-bit arithmetic costs several instructions; 64 on a CPU, which
    counts in them.
    """
    return target_of(device).index


def compile_kernel(
    reference: ir.Kernel,
    plan: CompletePlan,
    device: str,
    *,
    requested: Plan | None = None,
    arch: str | None = None,
) -> Executable:
    """Shape a reference kernel by a complete plan and compile it; with `arch` for that
    architecture, without a GPU.

    A compiler that caps the registers of a thread to fit one more block may spill them to memory.
    Unless the user (in `requested`) decided about that cap, such a kernel is compiled again without
    one.
    """
    executable = _compiled(reference, plan, device, arch)
    looser = without_cap(plan, requested, device)
    if looser is None or not _spills(executable):
        return executable
    relaxed = _compiled(reference, looser, device, arch)
    if _spills(relaxed) < _spills(executable):
        return replace(relaxed, capped=plan)
    return executable


def without_cap(plan: CompletePlan, requested: Plan | None, device: str) -> CompletePlan | None:
    """The plan without its cap of registers; None where it has none, or the user requested it."""
    if not target_of(device).has_blocks:
        return None
    requested = requested or Plan()
    if plan.registers:
        return Plan(registers=0).filled(plan) if requested.registers is None else None
    if plan.min_blocks == 1 or requested.min_blocks is not None:
        return None
    return Plan(min_blocks=1).filled(plan)


def _compiled(
    reference: ir.Kernel, plan: CompletePlan, device: str, arch: str | None
) -> Executable:

    def begin(text: str, kernel: ir.Kernel) -> None:
        """While the next text is made, and the program is written to the disk."""
        get_device(device).begin(text, kernel.name, arch, switches_of(plan))

    made = built(reference, plan, device, begin)
    return build_executable(made.program, device, arch, made.texts)


def _spills(executable: Executable) -> int:
    return sum(c.resources.spill_stores + c.resources.spill_loads for c in executable.cubins)


def value_type(kind: Record | t.ValueType) -> t.ValueType:
    """A parameter's type where it is known to be no record."""
    assert not isinstance(kind, Record)
    return kind


@dataclass(frozen=True, slots=True)
class Uses:
    """The fields of a record that a kernel reads and writes, as bits (see `two_sides.bits_of`).

    What it writes it also reads.
    """

    reads: int = EVERY
    writes: int = EVERY

    def and_reads(self, record: Record, fields: Iterable[str]) -> Uses:
        """These, and fields that are read besides."""
        bits, reads = bits_of(record), self.reads
        for field in fields:
            reads |= bits[field]
        return Uses(reads, self.writes)


ALL_USED = Uses()


def uses_of(lowered: Lowered, name: str, record: Record) -> Uses:
    """What a function uses of the record that is its parameter `name`."""
    bits, reads, writes = bits_of_leaves(record), 0, 0
    for function in (lowered.function, lowered.indexed):
        for p in () if function is None else function.parameters:
            parameter, _, leaf = p.name.partition(".")
            if parameter == name and leaf:
                bit = bits[leaf]
                reads, writes = reads | bit, writes | (bit if p.mutable else 0)
    return Uses(reads, writes)


def bind_record(array: RecordArray, uses: Uses = ALL_USED) -> BoundArray:
    """A record array as bytes. Raises `ArgumentError` for a view that kernels cannot run over.

    uses: of the kernels that run on it; arrays that a kernel does not write at all are known to be
    unchanged without.
    """
    owner, side = storage_of(array).owner, side_of(array)
    return BoundArray(
        places_of(array).data,
        array.arrangement,
        len(array),
        partial(_check, weakref.ref(owner), owner.placement, side, uses.reads),
        partial(side.write, uses.writes) if uses.writes else None,
    )


def _check(
    bound: weakref.ref[Storage], places: RecordPlacement, side: MemorySide, reads: int
) -> None:
    """Bring fields up to date.

    Raise `ArgumentError` where an array was changed in length since it was bound: its memory may be
    gone.
    """
    storage = bound()
    if storage is not None and storage.placement is not places:
        raise ArgumentError(
            f"an array of {storage.record.name} had {places.count:,} records when a call was bound "
            "to it, and was changed in length since "
            f"(now {len(storage):,}); bind the call again"
        )
    if side.followed:
        side.read(reads)


def layouts_of(records: Mapping[str, RecordArray]) -> dict[str, Layout]:
    """The layout of every record parameter."""
    return {n: r.layout for n, r in records.items()}
