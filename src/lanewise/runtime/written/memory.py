"""Local arrays of kernels that are written by hand: on the stack where they are small, else in
memory of the system, which the kernel gives back.
"""

from __future__ import annotations

from collections.abc import Sequence

from lanewise.runtime.llvm_lines import FunctionLines
from lanewise.runtime.written.kinds import ArrayKind, NumberKind
from lanewise.runtime.written.values import TextArray, TextNumber

ON_STACK = 1 << 16  # bytes of a kernel's local arrays


class LocalArrays:
    """Those of a kernel, and what gives their memory back."""

    def __init__(self, code: FunctionLines) -> None:
        self._code, self._left, self._heap = code, ON_STACK, list[str]()

    def made(self, kind: NumberKind, lengths: Sequence[TextNumber]) -> TextArray:
        """An array of these lengths; where there is no memory the kernel ends."""
        row = ArrayKind(kind, len(lengths), whole=True)
        size: int | None = kind.size
        for length in lengths:
            size = None if size is None or length.known is None else size * int(length.known)
        place = self._asked_for(kind, lengths) if size is None else self._placed(kind, size)
        return TextArray(row, place, tuple(n.name for n in lengths))

    def _placed(self, kind: NumberKind, size: int) -> str:
        if size > self._left:
            return self._system(str(size))
        self._left -= size
        count = max(1, size // kind.size)
        name = f"%{self._code.label('local')}"
        return self._code.room(name, f"[{count} x {kind.stored}]", 64)

    def _asked_for(self, kind: NumberKind, lengths: Sequence[TextNumber]) -> str:
        size = str(kind.size)
        for length in lengths:
            size = self._code.give(f"mul i64 {size}, {length.name}")
        return self._system(size)

    def _system(self, size: str) -> str:
        code = self._code
        code.needs |= {"declare noalias ptr @malloc(i64)", "declare void @free(ptr)"}
        room = code.room(f"%{code.label('heap')}", "ptr")
        code.rooms.append(f"  store ptr null, ptr {room}")
        self._heap.append(room)
        some = code.give(f"call i64 @llvm.umax.i64(i64 {size}, i64 1)")  # of none there is null
        code.needs.add("declare i64 @llvm.umax.i64(i64, i64)")
        place = code.give(f"call noalias ptr @malloc(i64 {some})")
        code.do(f"store ptr {place}, ptr {room}")
        there = code.label("memory")
        code.branch(code.give(f"icmp eq ptr {place}, null"), "no_memory", there)
        code.begin(there)
        return place

    def given_back(self) -> None:
        """The end of a kernel, of those that found memory and those that found none."""
        code = self._code
        room = code.room("%status", "i32")
        code.do(f"store i32 0, ptr {room}")
        code.jump("free")
        code.begin("no_memory")
        code.do(f"store i32 1, ptr {room}")
        code.begin("free")
        for heap in self._heap:
            pointer = code.give(f"load ptr, ptr {heap}")
            code.do(f"call void @free(ptr {pointer})")
        status = code.give(f"load i32, ptr {room}")
        code.end(f"ret i32 {status}")
