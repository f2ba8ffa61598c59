"""Names that users look for in lanewise, and where they are, or what they are called here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "inf": "math.inf", "infinity": "math.inf", "nan": "math.nan", "e": "math.e",
        "tau": "math.tau", "float32": "lw.f32", "float64": "lw.f64", "float16": "lw.f16",
        "int8": "lw.i8", "int16": "lw.i16", "int32": "lw.i32", "int64": "lw.i64",
        "uint8": "lw.u8", "uint16": "lw.u16", "uint32": "lw.u32", "float": "lw.f32 or lw.f64",
        "int": "lw.i32 or lw.i64", "where": "lw.select", "maximum": "lw.max",
        "minimum": "lw.min", "arctan2": "lw.atan2", "norm": "lw.length",
        "array": "Body.array(...) of a record class", "Array": "lw.Array1, lw.Array2 or lw.Array3",
        "jit": "lw.elementwise, lw.pairwise, lw.threadwise, ...",
        "kernel": "lw.elementwise, lw.pairwise, lw.threadwise, ...",
        "njit": "lw.elementwise, lw.pairwise, lw.threadwise, ...",
        "struct": "lw.Record", "atomic_add": "lw.scatter_add",
    }
)  # fmt: skip


def use(name: str) -> str:
    """`use math.inf`, or nothing for a name that is not one of these."""
    return f"use {ELSEWHERE[name]}" if name in ELSEWHERE else ""


def no_such_name(module: str, name: str, names: Iterable[str]) -> str:
    """What `AttributeError` says of a module that has these names, and not this one."""
    from lanewise.support.attributes import near

    hint = f"; {use(name)}" if name in ELSEWHERE else near(name, names)
    return f"module {module!r} has no attribute {name!r}{hint}"
