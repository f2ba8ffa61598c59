"""How types, names and flags of arithmetic are written in LLVM's language."""

from __future__ import annotations

from lanewise.language.types import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    Scalar,
)

TYPES = {
    BOOL: "i1", I8: "i8", U8: "i8", I16: "i16", U16: "i16", I32: "i32", U32: "i32", I64: "i64",
    F16: "half", F32: "float", F64: "double",
}  # fmt: skip
LETTERS = {F32: "f32", F64: "f64"}  # how the names of LLVM's own functions end
CONTRACT = "contract "
FREE = "reassoc nsz contract "
APPROXIMATE = "reassoc nsz arcp contract afn "
FAST = "fast "


def in_memory(kind: Scalar) -> str:
    """The type of a number in an array: booleans are bytes there."""
    return "i8" if kind == BOOL else TYPES[kind]


def quoted(name: str) -> str:
    """A name as LLVM reads it: letters beyond ASCII by their bytes."""
    if name.isascii():
        return name
    text = "".join(chr(b) if b < 128 else f"\\{b:02X}" for b in name.encode())
    return f'"{text}"'
