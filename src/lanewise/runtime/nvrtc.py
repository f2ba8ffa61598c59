"""CUDA C++ text to a cubin for an exact architecture, and what the cubin says of its kernel.

Needs NVRTC, no GPU and no driver.

A cubin is an ELF file (Tool Interface Standard, "Executable and Linking Format", 64 bits). What a
kernel takes stands in attributes of the section `.nv.info`, as NVIDIA's `cuobjdump
--dump-resource-usage` prints them: EIATTR_REGCOUNT, EIATTR_FRAME_SIZE, each with the number of the
kernel's symbol. Its shared memory is the size of a section. The driver reads the same,
so this is the truth; the compiler's log is only a report about it, and may be missing.
"""

from __future__ import annotations

import json
import os
import re
import struct
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any

from lanewise.runtime import compiling, lost_signs, nvrtc_child
from lanewise.runtime.cache import content_key, read_entry, remove_entry, write_entry
from lanewise.runtime.compiling import LOGGER
from lanewise.runtime.nvrtc_apart import NoProcess, compile_apart
from lanewise.support.errors import DeviceError
from lanewise.support.installation import install
from lanewise.support.interrupts import interrupts_wait

_IMPORTING = threading.RLock()
# kernels that nothing has requested yet, by their entry in the cache
_BEGUN: dict[str, Future[Cubin]] = {}
_COMPILING = threading.Lock()  # as NVRTC has one: who finds it taken need not wait
os.register_at_fork(after_in_child=_BEGUN.clear)  # whose threads are the parent's
FORMAT = "4"  # of the cache's entries: one file with what the log said of spills, and the code


@dataclass(frozen=True, slots=True)
class Resources:
    """What one thread and one block of a kernel take.

    registers, shared_bytes and stack_bytes stand in the machine code itself (see `runtime.cubin`);
    spills are known to the compiler alone, which reports them in its log.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True, slots=True)
class Switches:
    """What the compiler may do with a kernel, besides its text.

    fast_math: every algebraic shortcut. in_order: its assembler leaves instructions near the order
    in which they come (its first level of optimisation), where it else looks for its
    own.
    """

    fast_math: bool = False
    in_order: bool = False

    def options(self) -> list[str]:
        return ["--use_fast_math"] * self.fast_math + ["--ptxas-options=-O1"] * self.in_order


NONE = Switches()


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of one kernel for one architecture, and the resources it takes."""

    code: bytes
    resources: Resources
    log: str


@interrupts_wait()
def compile_cubin(text: str, name: str, arch: str, switches: Switches = NONE) -> Cubin:
    """Compile the kernel `<name>_kernel`, or read the result of an earlier compilation.

    `arch` is for example "sm_90"; raises `DeviceError` with the compiler's words.
    """
    entry = _entry(text, name, arch, switches)
    if begun := _BEGUN.pop(entry, None):
        return begun.result()
    return _cubin_of(entry, text, name, arch, switches)


def begin_cubin(text: str, name: str, arch: str, switches: Switches = NONE) -> None:
    """Begin with a kernel in a thread next to this one.

    `compile_cubin` will be asked the same, and says what went wrong with it.
    """
    entry, made = _entry(text, name, arch, switches), Future[Cubin]()
    if _BEGUN.setdefault(entry, made) is not made:
        return

    def work() -> None:
        try:
            made.set_result(_cubin_of(entry, text, name, arch, switches))
        except BaseException as error:
            made.set_exception(error)

    threading.Thread(target=work, name=f"lanewise-nvrtc-{name}").start()


def _entry(text: str, name: str, arch: str, switches: Switches) -> str:
    key = content_key(FORMAT, text, arch, *switches.options(), nvrtc_version())
    return f"cuda/{name}-{key}.cubin"


def _cubin_of(entry: str, text: str, name: str, arch: str, switches: Switches) -> Cubin:
    """An entry of the cache, or what the compiler makes."""
    if cached := _read(entry, name):
        return cached
    compiling.begin(name)
    try:
        code, log = _compile(text, name, arch, switches)
    finally:
        compiling.end(name)
    spills = parse_spills(log, name)
    try:
        cubin = _cubin(code, name, spills, log)
    except ValueError as error:
        raise DeviceError(
            f"NVRTC's machine code of {name} for {arch} cannot be read: {error}\n{log}"
        ) from error
    facts = {"spill_stores": spills[0], "spill_loads": spills[1], "log": log}
    write_entry(entry, json.dumps(facts).encode() + b"\n" + code)
    return cubin


def _cubin(code: bytes, name: str, spills: tuple[int, int], log: str) -> Cubin:
    stated = code_resources(code, f"{name}_kernel")
    return Cubin(
        code, Resources(stated.registers, stated.shared_bytes, stated.stack_bytes, *spills), log
    )


def _read(entry: str, name: str) -> Cubin | None:
    """An earlier result: a line of JSON with what the compiler said, then the code.

    One that lacks something is removed and made again.
    """
    content = read_entry(entry)
    if content is None:
        return None
    facts, _, code = content.partition(b"\n")
    try:
        said = json.loads(facts)
        return _cubin(
            code, name, (int(said["spill_stores"]), int(said["spill_loads"])), str(said["log"])
        )
    except (ValueError, KeyError, TypeError):
        remove_entry(entry)
        return None


def _compile(text: str, name: str, arch: str, switches: Switches) -> tuple[bytes, str]:
    """The machine code and what the compiler and its assembler said: in this process, or while that
    compiles in its own.
    """
    asked = {
        "library": _library(),
        "name": f"{name}.cu",
        "options": options(arch, switches),
        "version": nvrtc_version(),
        "ptx": lost_signs.suspected(arch, nvrtc_version()),
    }
    answer, code = _answer(asked, text)
    if _is_wrong(asked, answer):
        answer, code = _mended(asked, text)
    if answer["error"]:
        raise DeviceError(
            f"NVRTC could not compile {name} for {arch}:\n{answer['error']}\n{answer['log']}"
        )
    return code, answer["log"]


def _is_wrong(asked: dict[str, Any], answer: dict[str, str]) -> bool:
    """Whether the assembler had an input of which it makes wrong code (see `lost_signs`)."""
    return bool(asked["ptx"]) and not answer["error"] and lost_signs.loses_sign(answer["ptx"])


def _mended(asked: dict[str, Any], text: str) -> nvrtc_child.Answer:
    """The code of a text of which the assembler would make wrong code."""
    answer, code = _answer(asked, lost_signs.apart(text))
    if not answer["error"] and not _is_wrong(asked, answer):
        return answer, code
    LOGGER.info("%s is not optimised by the assembler, which would lose a sign", asked["name"])
    others = [o for o in asked["options"] if not o.startswith("--ptxas-options=-O")]
    return _answer({**asked, "options": [*others, lost_signs.WRITTEN_OUT]}, text)


def _answer(asked: dict[str, Any], text: str) -> nvrtc_child.Answer:
    if not _COMPILING.acquire(blocking=False):
        try:
            return compile_apart(asked, text)
        except NoProcess as reason:
            LOGGER.info("compiling %s in its turn: %s", asked["name"], reason)
        _COMPILING.acquire()
    try:
        return nvrtc_child.compiled(asked, text.encode())
    finally:
        _COMPILING.release()


def options(arch: str, switches: Switches) -> list[str]:
    """What the compiler gets.

    Its own cache is off: where a driver is present it returns code that it has made before with an
    empty log.
    """
    own = switches.options()
    return [
        f"-arch={arch}",
        "--generate-line-info",
        "--ptxas-options=-v",
        *own,
        "--std=c++17",
        "--no-cache",
    ]


@cache
@interrupts_wait()
def _library() -> str:
    """The path of the compiler, where `cuda.bindings` finds it."""
    try:
        from cuda.pathfinder import load_nvidia_dynamic_lib

        path = load_nvidia_dynamic_lib("nvrtc").abs_path
    except (ImportError, RuntimeError) as error:
        raise _no_compiler() from error
    if not path:
        raise _no_compiler()
    return path


def _no_compiler() -> DeviceError:
    return DeviceError(f"compiling for CUDA needs the package nvidia-cuda-nvrtc: {install('cuda')}")


@interrupts_wait()
def cuda_core() -> Any:
    """The module cuda.core; raises `DeviceError` when it is not installed."""
    try:
        with _IMPORTING:  # another thread that compiles would see half of it
            import cuda.core as core

            if not hasattr(core, "Program"):  # before 1.0 the names lived one level down
                import cuda.core.experimental as core  # type: ignore[no-redef]
    except ImportError as error:
        raise DeviceError(
            f"compiling for CUDA needs the package cuda-core: {install('cuda')}"
        ) from error
    return core


@interrupts_wait()
def nvrtc_version() -> str:
    """The version of the compiler, as "major.minor"."""
    try:
        from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise _no_compiler() from error
    return f"{major}.{minor}"


def parse_spills(log: str, name: str) -> tuple[int, int]:
    """Bytes of registers that a thread stores to memory and loads again, from the assembler's
    report.

    Raises `DeviceError` for a log without the report: no word is not the same as no spills.
    """
    match = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if match is None:
        said = f":\n{log}" if log.strip() else ", as its log is empty"
        raise DeviceError(f"ptxas did not say how many bytes {name} spills{said}")
    return int(match[1]), int(match[2])


# name, type, flags, address, offset, size, link, info, alignment, size of an entry
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
SYMBOL_TABLE, NO_BITS = 2, 8  # types of sections; the second one takes no room in the file
SIZED = 0x04  # the format of an attribute whose value is followed by that many bytes of data
FRAME_SIZE, REGISTER_COUNT = 0x11, 0x2F  # EIATTR_FRAME_SIZE, EIATTR_REGCOUNT
# from sm_90 on a block's first 1024 bytes of shared memory belong to the driver
RESERVED = b".nv.shared.reserved.0"
RESERVED_BYTES = 1024


@dataclass(frozen=True, slots=True)
class CodeResources:
    """What one thread takes of registers and of stack (bytes), and one block of static shared
    memory (bytes).

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
    """The resources of the kernel `entry` in a cubin; raises ValueError for bytes that are no cubin
    with such a kernel.
    """
    try:
        return _resources(code, entry.encode())
    except (struct.error, IndexError, OverflowError) as error:
        # an offset beyond the end, or beyond any file
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
    sections = [_Section(_text(code, texts + r[0]), r[1], r[4], r[5], r[6]) for r in raw]
    for s in sections:
        if s.type != NO_BITS and s.offset + s.size > len(code):
            raise ValueError(
                f"the section {s.name.decode(errors='replace')} ends after the end of the file"
            )
    return sections


def _symbol(code: bytes, sections: list[_Section], name: bytes) -> int:
    """The number of a symbol, by which attributes name their kernel."""
    for table in (s for s in sections if s.type == SYMBOL_TABLE):
        texts = sections[table.link].offset
        for i in range(table.size // SYMBOL.size):
            if (
                _text(code, texts + SYMBOL.unpack_from(code, table.offset + i * SYMBOL.size)[0])
                == name
            ):
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
