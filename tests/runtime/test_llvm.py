"""Kernels of LLVM's text: compiled, kept, called, and freed."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from lanewise.runtime import compile_workers, compiling, cpu, llvm
from lanewise.runtime.cache import cache_directory

TEXT = """\
; a kernel of a test

; takes: array written f32 i64 bool
define i32 @scaled_kernel(ptr %arguments, i64 %begin, i64 %end) {
entry:
  %from = load ptr, ptr %arguments
  %to.at = getelementptr i8, ptr %arguments, i64 16
  %to = load ptr, ptr %to.at
  %by.at = getelementptr i8, ptr %arguments, i64 32
  %by = load float, ptr %by.at
  %shift.at = getelementptr i8, ptr %arguments, i64 40
  %shift = load i64, ptr %shift.at
  %odd.at = getelementptr i8, ptr %arguments, i64 48
  %odd = load i8, ptr %odd.at
  %is_odd = icmp ne i8 %odd, 0
  br label %test
test:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %x.at = getelementptr float, ptr %from, i64 %i
  %x = load float, ptr %x.at
  %product = fmul float %x, %by
  %whole = sitofp i64 %shift to float
  %sum = fadd float %product, %whole
  %value = select i1 %is_odd, float 0.0, float %sum
  %y.at = getelementptr float, ptr %to, i64 %i
  store float %value, ptr %y.at
  %next = add i64 %i, 1
  br label %test
done:
  ret i32 STATUS
}
"""


def kernel_of(text: str = TEXT, status: str = "0") -> llvm.LlvmKernel:
    made = cpu.load_kernel(text.replace("STATUS", status), "scaled")
    assert isinstance(made, llvm.LlvmKernel)
    return made


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LANEWISE_CACHE_DIR", str(tmp_path))
    return tmp_path


def test_arguments_come_as_they_are(own_cache: Path) -> None:
    x, y = np.arange(6, dtype="f4"), np.zeros(6, "f4")
    kernel = kernel_of()
    kernel(x, y, np.float32(2.5), -3, np.bool_(False), 1, 5)
    np.testing.assert_array_equal(y, [0, *(2.5 * x[1:5] - 3), 0])
    run = kernel.bound((x, y, np.float32(1.0), 0, True))
    y[:] = 7
    run(0, 6)
    np.testing.assert_array_equal(y, np.zeros(6))


def test_a_bound_kernel_keeps_its_memory(own_cache: Path) -> None:
    y = np.zeros(1000, "f4")
    run = kernel_of().bound((np.ones(1000, "f4"), y, np.float32(1.0), 0, False))
    gc.collect()
    filler = [np.full(1000, 9, "f4") for _ in range(50)]
    run(0, 1000)
    assert y.sum() == 1000
    del filler


@pytest.mark.parametrize("what", ["read-only", "strided"])
def test_arrays_that_a_kernel_cannot_take(what: str, own_cache: Path) -> None:
    x, y = np.ones(8, "f4"), np.zeros(8, "f4")
    if what == "read-only":
        y.setflags(write=False)
    else:
        x = x[::2]
    with pytest.raises(AssertionError, match="scaled"):
        kernel_of()(x, y, np.float32(1.0), 0, False, 0, 4)
    assert not y.any()


def test_a_kernel_without_memory_says_so(own_cache: Path) -> None:
    x = np.ones(2, "f4")
    with pytest.raises(MemoryError, match="scaled found no memory for its local arrays"):
        kernel_of(status="1")(x, x.copy(), np.float32(1.0), 0, False, 0, 2)


def test_machine_code_is_kept_and_a_damaged_entry_made_again(own_cache: Path) -> None:
    x, y = np.ones(3, "f4"), np.zeros(3, "f4")
    text = TEXT.replace("STATUS", "0").replace("a kernel", "the kernel")
    before = compiling.count()
    for number in range(4):
        kernel = llvm.LlvmKernel(text, "scaled", "a key of its own")
        kernel(x, y, np.float32(number), 0, False, 0, 3)
        assert y.tolist() == [number] * 3
        (entry,) = (cache_directory() / "cpu").iterdir()
        if number == 1:
            entry.write_bytes(entry.read_bytes()[:-40])  # its digest tells
        if number == 2:
            assert llvm.read_entry(f"cpu/{entry.name}") is not None
            llvm.write_entry(f"cpu/{entry.name}", b"whole, and yet no object")
    assert compiling.count() - before == 3


def test_the_head_of_a_text_is_no_part_of_its_key() -> None:
    assert cpu.code_of("; a\n; plan: b\n\n; takes: i64\nx") == "\n; takes: i64\nx"[1:]
    assert kernel_of() is kernel_of(TEXT.replace("a kernel of a test", "another head"))


def test_errors_name_line_and_place(own_cache: Path) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)parsing error.*:\d+:\d+: error: .*%never"):
        llvm.machine_code(TEXT.replace("STATUS", "%never"))


def test_a_missing_function_is_an_error_and_not_a_crash(own_cache: Path) -> None:
    text = TEXT.replace("STATUS", "0").replace("define i32", "declare void @lw_nowhere()\n\ndefine i32", 1)
    kernel = llvm.LlvmKernel(text.replace("done:\n", "done:\n  call void @lw_nowhere()\n"), "scaled", "missing")
    with pytest.raises(RuntimeError, match="scaled_kernel"):
        kernel.load()


def test_one_text_is_one_object() -> None:
    text = TEXT.replace("STATUS", "0")
    assert len({llvm.machine_code(text) for _ in range(5)}) == 1


def test_a_kernel_goes_with_its_last_function(own_cache: Path) -> None:
    """Memory of a thousand kernels that were made and dropped."""
    content = llvm.machine_code(TEXT.replace("STATUS", "0"))

    def mapped() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not Path("/proc/self/statm").exists():
        pytest.skip("no /proc here")
    for _ in range(50):
        llvm._linked(content, "scaled")  # pyright: ignore[reportPrivateUsage]
    before = mapped()
    for _ in range(300):
        llvm._linked(content, "scaled")  # pyright: ignore[reportPrivateUsage]
    assert mapped() - before < 300 * 20_000


def test_other_threads_run_meanwhile(own_cache: Path) -> None:
    """As with Numba's `nogil`: ctypes lets go of Python's lock."""
    x, y = np.ones(1 << 22, "f4"), np.zeros(1 << 22, "f4")
    run = kernel_of().bound((x, y, np.float32(1.0), 0, False))
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
    run = kernel_of().bound((x, y, np.float32(1.0), 0, False))

    def run_long() -> None:
        for _ in range(100_000):
            run(0, len(x))

    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run_long()
    run(0, len(x))
    assert y.all()


def test_no_module_of_numba_is_needed(own_cache: Path, tmp_path: Path) -> None:
    """A kernel of LLVM's text is compiled and run in a process that never imports Numba."""
    program = (
        "import sys, numpy as np\nfrom lanewise.runtime import cpu\n"
        f"kernel = cpu.load_kernel({TEXT.replace('STATUS', '0')!r}, 'scaled')\n"
        "x = np.ones(4, 'f4'); y = np.zeros(4, 'f4'); kernel(x, y, np.float32(3.0), 1, False, 0, 4)\n"
        "print(y.tolist(), [n for n in sys.modules if n.partition('.')[0] == 'numba'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[4.0, 4.0, 4.0, 4.0] []"


def test_workers_make_the_code_of_either_language() -> None:
    text = TEXT.replace("STATUS", "0")
    assert cpu._machine_code((text, "scaled", None)) == llvm.machine_code(text)  # pyright: ignore[reportPrivateUsage]
    assert cpu._machine_code((text.replace("ret i32", "ret i17"), "scaled", None)) == b""  # pyright: ignore[reportPrivateUsage]
    assert not compile_workers.is_open()
