"""What the machine code of a kernel says about itself: the registers, the shared memory and the stack that the driver will give it.

A cubin is an ELF file (Tool Interface Standard, "Executable and Linking Format", 64 bits). What a kernel takes stands in attributes
of the section `.nv.info`, as NVIDIA's `cuobjdump --dump-resource-usage` prints them: EIATTR_REGCOUNT, EIATTR_FRAME_SIZE, each
with the number of the kernel's symbol. Its shared memory is the size of a section of its own. The driver reads the same,
so this is the truth; the compiler's log is only a report about it, and may be missing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

SECTION = struct.Struct(
    "<IIQQQQIIQQ"
)  # name, type, flags, address, offset, size, link, info, alignment, size of an entry
SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
SYMBOL_TABLE, NO_BITS = 2, 8  # types of sections; the second one takes no room in the file
SIZED = 0x04  # the format of an attribute whose value is followed by so many bytes of data
FRAME_SIZE, REGISTER_COUNT = 0x11, 0x2F  # EIATTR_FRAME_SIZE, EIATTR_REGCOUNT
RESERVED = b".nv.shared.reserved.0"  # from sm_90 on a block's first 1024 bytes of shared memory belong to the driver
RESERVED_BYTES = 1024


@dataclass(frozen=True, slots=True)
class CodeResources:
    """What one thread takes of registers and of stack (bytes), and one block of static shared memory (bytes).

    The shared memory that the driver reserves in each block is not counted.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int


@dataclass(frozen=True, slots=True)
class _Section:
    name: bytes
    type: int
    offset: int
    size: int
    link: int


def code_resources(code: bytes, entry: str) -> CodeResources:
    """The resources of the kernel `entry` in a cubin; raises ValueError for bytes that are no cubin with such a kernel."""
    try:
        return _resources(code, entry.encode())
    except (struct.error, IndexError, OverflowError) as error:  # an offset behind the end, or beyond any file
        raise ValueError(f"damaged machine code: {error}") from error


def _resources(code: bytes, entry: bytes) -> CodeResources:
    sections = _sections(code)
    symbol = _symbol(code, sections, entry)
    stated = {
        kind: value for s in sections if s.name == b".nv.info"
        for kind, number, value in _attributes(code, s) if number == symbol
    }  # fmt: skip
    registers = stated.get(REGISTER_COUNT, 0)
    if not 0 < registers <= 255:
        raise ValueError(f"the machine code states {registers} registers for {entry.decode()}")
    shared = sum(s.size for s in sections if s.name == b".nv.shared." + entry)
    if shared and any(s.name == RESERVED for s in sections):
        shared -= RESERVED_BYTES
    return CodeResources(registers, shared, stated.get(FRAME_SIZE, 0))


def _sections(code: bytes) -> list[_Section]:
    if code[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits, little-endian")
    (start,) = struct.unpack_from("<Q", code, 0x28)
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    raw = [SECTION.unpack_from(code, start + i * size) for i in range(count)]
    texts = raw[names][4]
    found = [_Section(_text(code, texts + r[0]), r[1], r[4], r[5], r[6]) for r in raw]
    for s in found:
        if s.type != NO_BITS and s.offset + s.size > len(code):
            raise ValueError(f"the section {s.name.decode(errors='replace')} ends behind the end of the file")
    return found


def _symbol(code: bytes, sections: list[_Section], name: bytes) -> int:
    """The number of a symbol, by which attributes name their kernel."""
    for table in (s for s in sections if s.type == SYMBOL_TABLE):
        texts = sections[table.link].offset
        for i in range(table.size // SYMBOL.size):
            if _text(code, texts + SYMBOL.unpack_from(code, table.offset + i * SYMBOL.size)[0]) == name:
                return i
    raise ValueError(f"the machine code has no kernel {name.decode()}")


def _attributes(code: bytes, section: _Section) -> Iterator[tuple[int, int, int]]:
    """The attributes of kernels: (kind, number of the symbol, value)."""
    place, end = section.offset, section.offset + section.size
    while place < end:
        form, kind, size = struct.unpack_from("<BBH", code, place)
        place += 4
        if form != SIZED:
            continue
        if size == 8:
            yield kind, *struct.unpack_from("<II", code, place)
        place += size


def _text(code: bytes, start: int) -> bytes:
    return code[start : code.index(b"\0", start)]
