"""CUDA C++ text to a cubin for an exact architecture. Needs the NVRTC package, no GPU and no driver."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from typing import Any

from lanewise.errors import DeviceError
from lanewise.runtime import compiling
from lanewise.runtime.cache import content_key, read_entry, remove_entry, write_entry
from lanewise.runtime.cubin import code_resources

_IMPORTING = threading.RLock()
FORMAT = "3"  # of the cache's entries: one file with what the log said of spills, and the code


@dataclass(frozen=True, slots=True)
class Resources:
    """What one thread and one block of a kernel take.

    registers, shared_bytes and stack_bytes stand in the machine code itself (see `runtime.cubin`); spills are known to the
    compiler alone, which reports them in its log.
    """

    registers: int
    shared_bytes: int
    stack_bytes: int
    spill_stores: int
    spill_loads: int


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of one kernel for one architecture, and the resources it takes."""

    code: bytes
    resources: Resources
    log: str


class _Log:
    def __init__(self) -> None:
        self.text = ""

    def write(self, piece: str | bytes) -> None:
        self.text += piece.decode(errors="replace") if isinstance(piece, bytes) else piece


def compile_cubin(text: str, name: str, arch: str, *, fast_math: bool = False) -> Cubin:
    """Compile the kernel `<name>_kernel`, or read the result of an earlier compilation.

    `arch` is for example "sm_90"; raises `DeviceError` with the compiler's words.
    """
    key = content_key(FORMAT, text, arch, str(fast_math), nvrtc_version())
    entry = f"cuda/{name}-{key}.cubin"
    if cached := _read(entry, name):
        return cached
    compiling.begin(name)
    try:
        code, log = _compile(text, name, arch, fast_math)
    finally:
        compiling.end(name)
    spills = parse_spills(log, name)
    try:
        cubin = _cubin(code, name, spills, log)
    except ValueError as error:
        raise DeviceError(f"NVRTC's machine code of {name} for {arch} cannot be read: {error}\n{log}") from error
    facts = {"spill_stores": spills[0], "spill_loads": spills[1], "log": log}
    write_entry(entry, json.dumps(facts).encode() + b"\n" + code)
    return cubin


def _cubin(code: bytes, name: str, spills: tuple[int, int], log: str) -> Cubin:
    stated = code_resources(code, f"{name}_kernel")
    return Cubin(code, Resources(stated.registers, stated.shared_bytes, stated.stack_bytes, *spills), log)


def _read(entry: str, name: str) -> Cubin | None:
    """An earlier result: a line of JSON with what the compiler said, then the code. One that lacks something is removed and made again."""
    content = read_entry(entry)
    if content is None:
        return None
    facts, _, code = content.partition(b"\n")
    try:
        said = json.loads(facts)
        return _cubin(code, name, (int(said["spill_stores"]), int(said["spill_loads"])), str(said["log"]))
    except (ValueError, KeyError, TypeError):
        remove_entry(entry)
        return None


def _compile(text: str, name: str, arch: str, fast_math: bool) -> tuple[bytes, str]:
    """The machine code and what the compiler and its assembler said.

    NVRTC's own cache is off: where a driver is present it returns code that it has made before with an empty log.
    """
    core = cuda_core()
    log = _Log()
    options = core.ProgramOptions(
        name=f"{name}.cu", arch=arch, std="c++17", use_fast_math=fast_math, lineinfo=True, ptxas_options=["-v"],
        no_cache=True,
    )  # fmt: skip
    try:
        code = core.Program(text, "c++", options).compile("cubin", logs=log).code
    except Exception as error:
        raise DeviceError(f"NVRTC could not compile {name} for {arch}:\n{error}\n{log.text}") from error
    return bytes(code), log.text


def cuda_core() -> Any:
    """The module cuda.core; raises `DeviceError` when it is not installed."""
    try:
        with _IMPORTING:  # another thread that compiles would see half of it
            import cuda.core as core

            if not hasattr(core, "Program"):  # before 1.0 the names lived one level down
                import cuda.core.experimental as core  # type: ignore[no-redef]
    except ImportError as error:
        raise DeviceError("compiling for CUDA needs the package cuda-core: pip install 'lanewise[cuda]'") from error
    return core


def nvrtc_version() -> str:
    """The version of the compiler, as "major.minor"."""
    try:
        from cuda.bindings import nvrtc  # pyright: ignore[reportAttributeAccessIssue]

        _, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        raise DeviceError(
            "compiling for CUDA needs the package nvidia-cuda-nvrtc: pip install 'lanewise[cuda]'"
        ) from error
    return f"{major}.{minor}"


def parse_spills(log: str, name: str) -> tuple[int, int]:
    """Bytes of registers that a thread stores to memory and loads again, from the assembler's report.

    Raises `DeviceError` for a log without the report: no word is not the same as no spills.
    """
    found = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if found is None:
        said = f":\n{log}" if log.strip() else ", as its log is empty"
        raise DeviceError(f"ptxas did not say how many bytes {name} spills{said}")
    return int(found[1]), int(found[2])
