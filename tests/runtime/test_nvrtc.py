"""What a kernel takes: read from its machine code, and compared with what the assembler reports; spills from the report
alone.
"""

from __future__ import annotations

import json
import random
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lanewise.runtime import compiling, nvrtc, nvrtc_apart, nvrtc_child
from lanewise.runtime.cache import cache_directory, write_entry
from lanewise.runtime.nvrtc import NONE, CodeResources, Switches, code_resources, compile_cubin, options, parse_spills
from lanewise.support.errors import DeviceError

SWITCHES = [NONE, Switches(fast_math=True), Switches(fast_math=True, in_order=True)]
TEXT = 'extern "C" __global__ void twice_kernel(float *a) { a[threadIdx.x] *= 2.0f; }'
# A stack frame (an array that is addressed), shared memory, and more registers than the bounds of the launch allow.
GREEDY = """extern "C" __global__ void __launch_bounds__(1024, 2) greedy_kernel(const float *a, float *b, int n) {
    __shared__ float s[1000]; __shared__ double u[7];
    float kept[64], many[48];
    for (int i = 0; i < 64; i++) kept[i] = a[i * n];
    for (int i = 0; i < 48; i++) many[i] = a[i * n + 1];
    s[threadIdx.x % 1000] = a[threadIdx.x]; u[threadIdx.x % 7] = n;
    __syncthreads();
    for (int k = 0; k < n; k++) {
        kept[(int)a[k] & 63] += s[k];
        #pragma unroll
        for (int i = 0; i < 48; i++) many[i] = many[i] * many[(i + 1) % 48] + (float)u[k % 7];
    }
    float t = 0;
    for (int i = 0; i < 64; i++) t += kept[i] * sinf(a[i]);
    for (int i = 0; i < 48; i++) t += many[i] / a[i];
    b[threadIdx.x] = t;
}
"""
REPORT = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'lj' for 'sm_90'
ptxas info    : Function properties for lj
    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 63 registers, used 1 barriers, 16384 bytes smem
"""


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    return tmp_path


def reported(log: str) -> CodeResources:
    """What the assembler says of the same kernel."""

    def number(pattern: str) -> int:
        found = re.search(pattern, log)
        return int(found[1]) if found else 0

    return CodeResources(
        number(r"Used (\d+) registers"), number(r"(\d+) bytes smem"), number(r"(\d+) bytes stack frame")
    )


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"])
def test_the_code_says_what_the_assembler_reports(own_cache: Path, arch: str) -> None:
    """Stack, static shared memory (without the part that the driver reserves) and registers; tests/emit does it for the
    corpus.
    """
    for text, name in ((TEXT, "twice"), (GREEDY, "greedy")):
        cubin = compile_cubin(text, name, arch)
        stated = code_resources(cubin.code, f"{name}_kernel")
        assert stated == reported(cubin.log), cubin.log
        found = cubin.resources
        assert (found.registers, found.shared_bytes, found.stack_bytes) == (
            stated.registers, stated.shared_bytes, stated.stack_bytes,
        )  # fmt: skip
    assert (stated.shared_bytes, stated.stack_bytes >= 256) == (4056, True)


def test_registers_are_known_without_a_log(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that has made the code before may say nothing: then only spills are unknown, and that is an error, not
    0.
    """
    cubin = compile_cubin(TEXT, "twice", "sm_90")
    assert code_resources(cubin.code, "twice_kernel").registers == cubin.resources.registers > 0
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: (cubin.code, ""))
    with pytest.raises(DeviceError) as error:
        compile_cubin(TEXT, "twice", "sm_80")
    assert str(error.value) == "ptxas did not say how many bytes twice spills, as its log is empty"
    assert len(list(cache_directory().rglob("*.cubin"))) == 1  # nothing half known is kept


def test_the_compiler_keeps_no_cache_of_its_own(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a driver is present it would return an earlier result with an empty log."""
    asked: list[list[str]] = []

    def recording(arch: str, switches: Switches) -> list[str]:
        asked.append(options(arch, switches))
        return asked[-1]

    monkeypatch.setattr(nvrtc, "options", recording)
    compile_cubin(TEXT, "twice", "sm_90")
    assert ["--no-cache" in o for o in asked] == [True]


def test_spills_are_read_from_the_report() -> None:
    assert parse_spills(REPORT, "lj") == (12, 16)


@pytest.mark.parametrize(
    ("log", "said"), [("", ", as its log is empty"), ("a warning\n", ":\na warning\n")], ids=["empty", "without"]
)
def test_a_report_without_spills_is_an_error_and_not_0(log: str, said: str) -> None:
    with pytest.raises(DeviceError) as error:
        parse_spills(log, "lj")
    assert str(error.value) == f"ptxas did not say how many bytes lj spills{said}"


def test_damaged_code_is_an_error_that_names_the_damage(own_cache: Path) -> None:
    code = compile_cubin(GREEDY, "greedy", "sm_90").code
    for damaged, said in (
        (b"", "no ELF file of 64 bits, little-endian"),
        (b"\x7fELF\x01" + code[5:], "no ELF file of 64 bits, little-endian"),
    ):
        with pytest.raises(ValueError, match=said):
            code_resources(damaged, "greedy_kernel")
    with pytest.raises(ValueError, match="the machine code has no kernel other_kernel"):
        code_resources(code, "other_kernel")


def test_no_damage_ends_in_another_error(own_cache: Path) -> None:
    """Bytes changed, cut off and put in, in many ways: resources or a ValueError."""
    code, rng = compile_cubin(GREEDY, "greedy", "sm_90").code, random.Random(5)
    for _ in range(2000):
        damaged = bytearray(code)
        for _ in range(rng.randint(1, 30)):
            damaged[rng.choice((rng.randrange(64), rng.randrange(len(code))))] = rng.randrange(256)
        try:
            found = code_resources(bytes(damaged[: rng.randint(1, len(code))]), "greedy_kernel")
        except ValueError:
            continue
        assert 0 < found.registers <= 255


def test_an_earlier_result_that_says_something_else_is_made_again(own_cache: Path) -> None:
    first = compile_cubin(TEXT, "twice", "sm_90")
    (path,) = cache_directory().rglob("*.cubin")
    name = f"cuda/{path.name}"
    for content in (
        json.dumps({"log": first.log}).encode() + b"\n" + first.code,
        b'{"spill_stores": 0, "spill_loads": 0, "log": ""}\nno machine code',
        b"",
    ):
        write_entry(name, content)  # with the checksum of what it holds
        assert compile_cubin(TEXT, "twice", "sm_90").resources == first.resources
        compiled = compiling.count()
        assert compile_cubin(TEXT, "twice", "sm_90").code == first.code
        assert compiling.count() == compiled  # what it made is kept


# ------------------------------------------------------------ compilers in processes of their own


@pytest.fixture
def busy() -> Iterator[None]:
    """The compiler of this process is at work."""
    with nvrtc._COMPILING:
        yield


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_a_process_of_its_own_makes_the_same_code(own_cache: Path, switches: Switches) -> None:
    here = nvrtc._compile(GREEDY, "greedy", "sm_90", switches)
    with nvrtc._COMPILING:
        cubin = compile_cubin(GREEDY, "greedy", "sm_90", switches)
    assert cubin.code == here[0]
    assert parse_spills(cubin.log, "greedy") == parse_spills(here[1], "greedy")


@pytest.mark.usefixtures("busy")
def test_what_another_process_cannot_compile_is_told_in_the_words_of_the_compiler(own_cache: Path) -> None:
    with pytest.raises(
        DeviceError, match=r"NVRTC could not compile wrong for sm_90:\n.*COMPILATION\nwrong.cu\(1\): error"
    ):
        compile_cubin("int x = ;", "wrong", "sm_90")


@pytest.mark.parametrize("python", ["", "/usr/bin/blender", "/nowhere/python3"])
def test_without_an_interpreter_kernels_wait_for_their_turn(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(sys, "executable", python)
    nvrtc._COMPILING.acquire()
    threading.Timer(0.1, nvrtc._COMPILING.release).start()
    assert compile_cubin(TEXT, "twice", "sm_90").code.startswith(b"\x7fELF")


def test_another_version_of_the_compiler_is_not_asked() -> None:
    asked = {"library": nvrtc._library(), "name": "twice.cu", "options": options("sm_90", NONE), "version": "1.0"}
    for answer in (nvrtc_apart.compile_apart(asked, TEXT), nvrtc_child.compiled(asked, TEXT.encode())):
        assert re.fullmatch(r"NVRTC \d+\.\d+ instead of 1\.0", answer[0]["error"])


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_the_compiler_is_asked_for_what_cuda_core_would_ask_for(switches: Switches) -> None:
    made = nvrtc.cuda_core().ProgramOptions(
        name="twice.cu", arch="sm_90", std="c++17", use_fast_math=switches.fast_math, lineinfo=True,
        ptxas_options=["-v"] + ["-O1"] * switches.in_order, no_cache=True,
    )  # fmt: skip
    assert sorted(o.decode() for o in made.as_bytes("nvrtc")) == sorted(options("sm_90", switches))


def test_what_is_begun_is_waited_for_and_not_made_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, go = list[str](), threading.Event()

    def slow(text: str, name: str, arch: str, switches: Switches) -> tuple[bytes, str]:
        go.wait()
        made.append(name)
        return compiled

    compiled = nvrtc._compile(TEXT, "twice", "sm_90", NONE)
    monkeypatch.setattr(nvrtc, "_compile", slow)
    nvrtc.begin_cubin(TEXT, "twice", "sm_90")
    nvrtc.begin_cubin(TEXT, "twice", "sm_90")
    go.set()
    assert compile_cubin(TEXT, "twice", "sm_90").code == compiled[0]
    assert compile_cubin(TEXT, "twice", "sm_90").code == compiled[0]  # from the cache
    assert made == ["twice"]
    assert not nvrtc._BEGUN


def test_what_went_wrong_meanwhile_is_told_who_asks(own_cache: Path) -> None:
    nvrtc.begin_cubin("int x = ;", "wrong", "sm_90")
    with pytest.raises(DeviceError, match="NVRTC could not compile wrong"):
        compile_cubin("int x = ;", "wrong", "sm_90")
