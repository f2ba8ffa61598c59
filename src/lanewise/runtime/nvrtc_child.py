"""A compiler process: one text for NVRTC on its input, machine code on its output.

Run as a file by `nvrtc_apart`, with nothing but the standard library, so that it begins in
hundredths of a second. Input: a line of JSON with `library` (the path of NVRTC), `name` (what
errors call the text), `options`, `version` (of the library that is requested) and `ptx` (whether
the assembler's input is requested), then the text. Output: a line of JSON with `error` ("" for
none), `log` and `ptx`, then the code.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from typing import Any

Asked = tuple[dict[str, Any], bytes]
Answer = tuple[dict[str, str], bytes]


def compiled(asked: dict[str, Any], text: bytes) -> Answer:
    """What NVRTC makes of a text, and what it says of it."""
    library = ctypes.CDLL(asked["library"])
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    if f"{major.value}.{minor.value}" != asked["version"]:
        return {
            "error": f"NVRTC {major.value}.{minor.value} instead of {asked['version']}",
            "log": "",
        }, b""
    program = ctypes.c_void_p()
    options = [str(o).encode() for o in asked["options"]]
    library.nvrtcCreateProgram(
        ctypes.byref(program), text, str(asked["name"]).encode(), 0, None, None
    )
    status = library.nvrtcCompileProgram(
        program, len(options), (ctypes.c_char_p * len(options))(*options)
    )
    log = _got(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return {"error": library.nvrtcGetErrorString(status).decode(), "log": log}, b""
    ptx = _got(library, program, "PTX").rstrip(b"\0").decode() if asked["ptx"] else ""
    return {"error": "", "log": log, "ptx": ptx}, _got(library, program, "CUBIN")


def _got(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def read(message: bytes) -> tuple[dict[str, Any], bytes]:
    """The two parts of a message."""
    first, _, rest = message.partition(b"\n")
    return json.loads(first), rest


def written(first: dict[str, Any], rest: bytes) -> bytes:
    """A message of two parts."""
    return json.dumps(first).encode() + b"\n" + rest


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the affair of the process that waits
    sys.stdout.buffer.write(written(*compiled(*read(sys.stdin.buffer.read()))))
