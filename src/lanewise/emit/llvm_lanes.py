"""Statements for the lanes of SIMD registers in LLVM's language: each runs for all lanes at once.

`lane_choices.py` says which variables differ between lanes, which loops lanes share and what is
written past the caches, `lane_prefetches.py` what is requested ahead.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from lanewise.emit.lane_choices import LaneChoices
from lanewise.emit.lane_prefetches import LanePrefetches
from lanewise.emit.llvm_instructions import in_memory
from lanewise.emit.llvm_lane_loops import LaneLoops
from lanewise.emit.llvm_lane_memory import LaneMemory
from lanewise.emit.llvm_lane_values import LaneValues
from lanewise.emit.llvm_vectors import Vectors
from lanewise.emit.walks import walk_of
from lanewise.ir import build
from lanewise.ir import nodes as ir
from lanewise.language.target import LINE, PAGE
from lanewise.language.types import BOOL, LocalArray

if TYPE_CHECKING:
    from lanewise.emit.llvm_statements import Writer

# bytes: as far from a row in a page as the second half of what is kept is from it on the other side
ELSEWHERE = 1280


class LaneWriter:
    """Writes, with the writer of a kernel, what differs between lanes."""

    def __init__(self, writer: Writer, threads: ir.Parallel, fast: bool) -> None:
        self.writer, self.code = writer, writer.code
        self.lanes = LaneChoices(writer.kernel, threads)
        self.vectors = Vectors(self.code, self.lanes.count, fast)
        self.values = LaneValues(writer, self.lanes, self.vectors)
        ahead = LanePrefetches(self.lanes, threads)
        self.moves, self.loops = LaneMemory(self.values, ahead), LaneLoops(self.values, ahead)

    def tail(self) -> None:
        if self.lanes.past:
            self.code.do("fence seq_cst")

    def memory(self, b: ir.BufferArgument, name: str) -> None:
        """Where in memory of a core's own a buffer begins: with a line, or registers that are stored
        there would lie in two lines each.

        What lanes keep of their rounds begins elsewhere in a page than the array that is written,
        and mostly the one that is read: a load from where another page was stored to shortly before
        waits for it.
        """
        give, kind, line = self.code.give, b.type, LINE // b.type.size
        written = [x for x in self.writer.kernel.buffers if x.written and x.space == "global"]
        at = self.vectors.begins(f"{name}.room", kind, PAGE)
        if not self.lanes.loops or not written:
            minus = give(f"sub i64 0, {at}")
            place = give(f"and i64 {minus}, {line - 1}")
        else:
            other = self.writer.buffer(written[0].name)
            there = self.vectors.begins(other, self.values.type_of(written[0].name), PAGE)
            begin = give(f"and i64 {there}, {-line}")
            moved = give(f"add i64 {begin}, {ELSEWHERE // kind.size}")
            apart = give(f"sub i64 {moved}, {at}")
            place = give(f"and i64 {apart}, {PAGE // kind.size - 1}")
        self.code.do(f"{name} = getelementptr {in_memory(kind)}, ptr {name}.room, i64 {place}")

    def array_of(self, a: LocalArray) -> tuple[str, int, int]:
        """A register for each element of a local array: its type, how many there are, its bytes."""
        return self.vectors.kind(a.element), a.length, self.lanes.count * a.element.size

    def room_of(self, b: ir.BufferArgument) -> int:
        """How many elements of room memory of a core's own needs."""
        written = any(x.written and x.space == "global" for x in self.writer.kernel.buffers)
        return b.length + (PAGE if self.lanes.loops and written else LINE) // b.type.size

    def statement(self, s: ir.Statement) -> bool:
        """Write a statement whose effect differs between lanes; False for one that is the same for
        all of them.
        """
        lanes = self.lanes
        match s:
            case ir.Barrier():
                return True
            case ir.Assign(value=ir.Builtin(name="phase" | "read_phase" as phase)):
                written = phase == "phase"
                buffer = next(
                    b for b in lanes.kernel.buffers if b.written == written and b.space == "global"
                )
                place = self.vectors.begins(self.writer.buffer(buffer.name), buffer.type)
                kind = s.value.type
                self.writer.assign(s.name, self.vectors.whole(place, kind), kind)
            case ir.Assign(value=ir.Builtin(name="far")):
                (written_in_order,) = lanes.ordered
                self.writer.assign(s.name, self.moves.past(written_in_order), BOOL)
            case ir.Assign() if s.name in lanes.varying:
                self.values.assigned_to(s.name, self.values.register(s.value), s.value.type)
            case ir.Load() if s.names[0] in lanes.varying:
                self.moves.load(s)
            case ir.Store():
                self.moves.store(s)
            case ir.Prefetch():
                self.vectors.prefetch(self.values.pointer(s.buffer, s.index))
            case ir.Least():
                assert not s.others  # of threads that have several targets
                value = self.vectors.least(self.values.register(s.value), s.value.type)
                self.writer.assign(s.name, value, s.value.type)
            case ir.Shuffle():
                value, kind = self.values.register(s.value), s.value.type
                moved = self.vectors.shuffle(value, kind, s.distance, s.group)
                self.values.assigned_to(s.name, moved, kind)
            case ir.DeclareArray() if s.name in lanes.varying:
                _, length, size = self.array_of(s.type)
                self.vectors.clear(self.writer.lying[s.name], length * size)
            case ir.SetElement() if s.array in lanes.varying:
                self.values.set_element(s)
            case ir.If() if lanes.differs(s.condition):
                self.masked(s)
            case ir.For() if s.variable in lanes.loops:
                self.loops.shared_rounds(s)
            case ir.For() if lanes.is_walked(s) and (w := walk_of(s)) is not None:
                self.loops.walk(w, s)
            case _:
                return False
        return True

    def masked(self, s: ir.If) -> None:
        """Both sides of a branch, each for the lanes that take it; a test that all lanes share
        leaves out all of it.
        """
        lanes, tests = self.lanes, build.conjuncts(s.condition)
        shared = [t for t in tests if not lanes.differs(t)]
        if shared and not s.otherwise:
            assigned = set(lanes.assigned)
            rest = replace(s, condition=build.all_of(*(t for t in tests if lanes.differs(t))))
            self.writer.statement(replace(s, condition=build.all_of(*shared), then=(rest,)))
            # code behind it reads nothing that may not have been computed
            lanes.assigned = assigned
            return
        mask = self.values.mask(s.condition)
        sides = [(mask, s.then)]
        if s.otherwise:
            other = self.vectors.opposite(BOOL, mask)
            sides.append(
                (self.values.both(lanes.masks[-1], other) if lanes.masks else other, s.otherwise)
            )
        for here, block in sides:
            if block:
                lanes.masks.append(here)
                self.writer.block(block)
                lanes.masks.pop()
