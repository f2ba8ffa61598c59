"""Kernels of LLVM's text: compiled, kept, called, and freed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lanewise as lw
from lanewise.compiler.pipeline import build_program
from lanewise.emit.llvm import emit_llvm
from lanewise.ir import nodes as ir
from lanewise.language.types import BOOL, F32, I64, U32
from lanewise.patterns.elementwise.build import ElementwiseArguments, build_elementwise
from lanewise.planning.plan import NEUTRAL
from lanewise.runtime import compile_workers, compiling, cpu, llvm
from lanewise.runtime.cache import cache_directory, read_entry, write_entry


@lw.elementwise
def scaled(x: lw.f32, by: lw.f32, shift: lw.i64, odd: lw.bool, back: lw.u32) -> lw.f32:
    if odd:
        return 0.0
    return x * by + lw.f32(shift) - lw.f32(back)


UNIFORMS = {"by": F32, "shift": I64, "odd": BOOL, "back": U32}
REFERENCE = build_elementwise(scaled.lowered, ElementwiseArguments({}, {"x": F32}, UNIFORMS), I64)
(KERNEL,) = build_program(REFERENCE, NEUTRAL, "cpu").kernels
HUGE = ir.BufferArgument("huge", "huge", 0, F32, 1, True, "shared", 1 << 22)
TEXT = emit_llvm(KERNEL, "a kernel of a test", locations=False)


def kernel_of(text: str = TEXT) -> llvm.LlvmKernel:
    made = cpu.load_kernel(text, "scaled")
    assert isinstance(made, llvm.LlvmKernel)
    return made


def numbers(count: int, by: float = 1.0, shift: int = 0, *, odd: bool = False, back: int = 0) -> tuple[Any, ...]:
    """What comes behind the arrays, in the order of the kernel."""
    given = {"by": np.float32(by), "shift": shift, "odd": np.bool_(odd), "back": back}
    return tuple(given.get(p.name, count) for p in KERNEL.counts + KERNEL.uniforms)


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_arguments_come_as_they_are(own_cache: Path) -> None:
    x, y = np.arange(6, dtype="f4"), np.zeros(6, "f4")
    kernel = kernel_of()
    kernel(x, y, *numbers(6, 2.5, -3), 1, 5)
    np.testing.assert_array_equal(y, [0, *(2.5 * x[1:5] - 3), 0])
    kernel(x, y, *numbers(6, odd=True), 0, 6)
    np.testing.assert_array_equal(y, np.zeros(6))
    kernel(x, y, *numbers(6, np.inf, -(2**62), back=2**32 - 1), 1, 2)
    assert y[1] == np.inf
    kernel(x, y, *numbers(6, 0.0, back=2**32 - 1), 1, 2)
    assert y[1] == -np.float32(2**32 - 1)


def test_wrong_arguments_are_errors_of_python(own_cache: Path) -> None:
    x, y, function = np.ones(4, "f4"), np.zeros(4, "f4"), kernel_of().function
    wanted = 2 + len(numbers(4)) + 2
    with pytest.raises(TypeError, match=f"scaled takes {wanted} arguments"):
        function(x, y, *numbers(4), 0)
    with pytest.raises(TypeError):
        function(x, y, *numbers(4), 0, "end")
    with pytest.raises(OverflowError):
        function(x, y, *numbers(4, shift=2**70), 0, 4)
    assert not y.any()
    assert sys.getrefcount(function) < 5


@pytest.mark.parametrize("what", ["read-only", "strided", "two dimensions", "no dimension"])
def test_arrays_that_a_kernel_cannot_take(what: str, own_cache: Path) -> None:
    """The machine code looks at arrays as NumPy has them in memory, which this test holds it to."""
    x, y = np.ones(8, "f4"), np.zeros(8, "f4")
    match what:
        case "read-only":
            y.setflags(write=False)
        case "strided":
            x = np.ones(16, "f4")[::2]
        case "two dimensions":
            x = np.ones((2, 4), "f4")
        case _:
            x = np.array(1, "f4")
    with pytest.raises(AssertionError, match="scaled got an array that is no row, or one to write that is read-only"):
        kernel_of()(x, y, *numbers(8), 0, 8)
    assert not y.any()
    fixed, empty = np.ones(8, "f4"), np.zeros(0, "f4")
    fixed.setflags(write=False)
    found = np.zeros(8, "f4")
    kernel_of()(fixed, found, *numbers(8), 0, 8)  # which is only read
    assert found.all()
    kernel_of()(empty, empty.copy(), *numbers(0), 0, 0)


def test_a_kernel_without_memory_says_so(own_cache: Path) -> None:
    x = np.ones(2, "f4")
    with pytest.raises(MemoryError, match="scaled found no memory for its local arrays"):
        kernel_of(TEXT.replace("ret i32 0", "ret i32 1"))(x, x.copy(), *numbers(2), 0, 2)


def test_large_local_arrays_are_memory_of_the_system(own_cache: Path) -> None:
    """Beyond what a stack surely holds; the same bits as on it."""
    text = emit_llvm(replace(KERNEL, buffers=(*KERNEL.buffers, HUGE)), "head", locations=False)
    assert "call noalias ptr @aligned_alloc(i64 64, i64 16777216)" in text
    assert text.count("call void @free(ptr %huge_array)") == 1
    x, y = np.ones(8, "f4"), np.zeros(8, "f4")
    kernel_of(text)(x, y, *numbers(8, 3.0), 0, 8)
    assert (y == 3).all()


def test_machine_code_is_kept_and_a_damaged_entry_made_again(own_cache: Path) -> None:
    x, y = np.ones(3, "f4"), np.zeros(3, "f4")
    before = compiling.count()
    for number in range(4):
        kernel = llvm.LlvmKernel(lambda: TEXT, "scaled", "a key of its own")
        kernel(x, y, *numbers(3, number), 0, 3)
        assert y.tolist() == [number] * 3
        (entry,) = (cache_directory() / "cpu").iterdir()
        if number == 1:
            entry.write_bytes(entry.read_bytes()[:-40])  # its digest tells
        if number == 2:
            assert read_entry(f"cpu/{entry.name}") is not None
            write_entry(f"cpu/{entry.name}", b"whole, and yet no object")
    assert compiling.count() - before == 3


def test_the_head_of_a_text_is_no_part_of_its_key() -> None:
    assert cpu.code_of("; a\n; plan: b\n\ndefine") == "define"
    assert kernel_of() is kernel_of(TEXT.replace("a kernel of a test", "another head"))


def test_errors_name_line_and_place(own_cache: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)parsing error.*:\d+:\d+: error: .*%never"):
        llvm.machine_code(TEXT.replace("ret i32 0", "ret i32 %never"))


def test_a_missing_function_is_an_error_and_not_a_crash(own_cache: Path) -> None:
    text = TEXT.replace("define internal", "declare void @lw_nowhere()\n\ndefine internal", 1)
    text = text.replace("  ret i32 0", "  call void @lw_nowhere()\n  ret i32 0")
    kernel = llvm.LlvmKernel(lambda: text, "scaled", "missing")
    with pytest.raises(RuntimeError, match="scaled_kernel"):
        kernel.load()


def test_one_text_is_one_object() -> None:
    assert len({llvm.machine_code(TEXT) for _ in range(5)}) == 1


def test_code_goes_with_the_last_use_of_its_function(own_cache: Path) -> None:
    """Memory of hundreds of kernels that were made and dropped; a bound one keeps code and arrays."""
    content = llvm.machine_code(TEXT)

    def mapped() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc here")
    y = np.zeros(1000, "f4")
    run = partial(llvm._linked(content, "scaled"), np.ones(1000, "f4"), y, *numbers(1000))  # pyright: ignore[reportPrivateUsage]
    for _ in range(50):
        llvm._linked(content, "scaled")  # pyright: ignore[reportPrivateUsage]
    gc.collect()
    before = mapped()
    for _ in range(300):
        llvm._linked(content, "scaled")  # pyright: ignore[reportPrivateUsage]
    assert mapped() - before < 300 * 20_000
    run(0, 1000)
    assert y.sum() == 1000


def test_other_threads_run_meanwhile(own_cache: Path) -> None:
    """A kernel lets go of Python's lock."""
    x, y = np.ones(1 << 22, "f4"), np.zeros(1 << 22, "f4")
    run = partial(kernel_of().function, x, y, *numbers(len(x)))
    turns, stop = [0], threading.Event()

    def count() -> None:
        while not stop.is_set():
            turns[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    before = turns[0]
    for _ in range(20):
        run(0, len(x))
    passed = turns[0] - before
    stop.set()
    thread.join()
    assert passed > 20


def test_ctrl_c_is_raised_behind_a_kernel(own_cache: Path) -> None:
    x, y = np.ones(1 << 20, "f4"), np.zeros(1 << 20, "f4")
    run = partial(kernel_of().function, x, y, *numbers(len(x)))

    def run_long() -> None:
        for _ in range(100_000):
            run(0, len(x))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of xdist ignore it
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_long()
    finally:
        signal.signal(signal.SIGINT, before)
    run(0, len(x))
    assert y.all()


def test_no_module_of_numba_is_needed(own_cache: Path) -> None:
    """A call is compiled and run in a process that never imports Numba."""
    program = own_cache / "twice.py"
    program.write_text(
        "import sys\nimport numpy as np\nimport lanewise as lw\n\n@lw.elementwise\ndef twice(x: lw.f32) -> lw.f32:\n    return 2.0 * x\n\n"
        "print(twice(np.ones(3, 'f4')).tolist(), [n for n in sys.modules if n.partition('.')[0] == 'numba'])\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[2.0, 2.0, 2.0] []"


def test_workers_make_the_code_of_a_text() -> None:
    assert cpu._machine_code(TEXT) == llvm.machine_code(TEXT)  # pyright: ignore[reportPrivateUsage]
    wrong = TEXT.replace("ret i32 0", "ret i17 0")
    assert cpu._machine_code(wrong) == b""  # pyright: ignore[reportPrivateUsage]
    assert not compile_workers.is_open()


@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_free_memory_may_lie_far_apart() -> None:
    """As in a process that holds a CUDA context: sections of one object lie together, whatever is free elsewhere."""
    script = Path(__file__).with_name("far_pages_kernel.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
