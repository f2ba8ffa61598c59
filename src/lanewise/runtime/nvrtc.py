"""CUDA C++ text to a cubin for an exact architecture. Needs the NVRTC package, no GPU and no driver."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lanewise.errors import DeviceError
from lanewise.runtime.cache import cache_directory, content_key, write_once


@dataclass(frozen=True, slots=True)
class Resources:
    """What the compiler says one thread and one block of a kernel take."""

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
    """Compile, or read the result of an earlier compilation.

    `arch` is for example "sm_90"; raises `DeviceError` with the compiler's words.
    """
    key = content_key(text, arch, str(fast_math), nvrtc_version())
    folder = cache_directory() / "cuda"
    code_path, info_path = folder / f"{name}-{key}.cubin", folder / f"{name}-{key}.json"
    if cached := _read(code_path, info_path):
        return cached
    cubin = _compile(text, name, arch, fast_math)
    write_once(code_path, cubin.code)
    info = {"resources": asdict(cubin.resources), "log": cubin.log}
    write_once(info_path, json.dumps(info).encode())  # last: a reader needs both
    return cubin


def _read(code_path: Path, info_path: Path) -> Cubin | None:
    """An earlier result; a damaged one is removed and made again."""
    if not info_path.exists() or not code_path.exists():
        return None
    try:
        info = json.loads(info_path.read_text())
        code = code_path.read_bytes()
        resources = Resources(**info["resources"])
        if not code.startswith(b"\x7fELF") or not resources.registers:
            raise ValueError("no machine code, or nothing known about it")
        return Cubin(code, resources, info["log"])
    except (ValueError, KeyError, TypeError):
        code_path.unlink(missing_ok=True)
        info_path.unlink(missing_ok=True)
        return None


def _compile(text: str, name: str, arch: str, fast_math: bool) -> Cubin:
    core = cuda_core()
    log = _Log()
    options = core.ProgramOptions(
        name=f"{name}.cu", arch=arch, std="c++17", use_fast_math=fast_math, lineinfo=True, ptxas_options=["-v"]
    )
    try:
        code = core.Program(text, "c++", options).compile("cubin", logs=log).code
    except Exception as error:
        raise DeviceError(f"NVRTC could not compile {name} for {arch}:\n{error}\n{log.text}") from error
    return Cubin(bytes(code), parse_resources(log.text, name), log.text)


def cuda_core() -> Any:
    """The module cuda.core; raises `DeviceError` when it is not installed."""
    try:
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


def parse_resources(log: str, name: str) -> Resources:
    """Read ptxas's own report; raises `DeviceError` for one that does not say how many registers a thread takes."""

    def number(pattern: str) -> int:
        found = re.search(pattern, log)
        return int(found.group(1)) if found else 0

    resources = Resources(
        number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes stack frame"),
        number(r"(\d+) bytes spill stores"), number(r"(\d+) bytes spill loads"),
    )  # fmt: skip
    if not resources.registers:
        said = f":\n{log}" if log.strip() else ", as its log is empty"
        raise DeviceError(f"ptxas did not say how many registers {name} takes{said}")
    return resources
