"""Links a kernel where free pages of memory lie 4 GiB apart, and calls it. Run by `test_llvm.py`."""

import ctypes

import numpy as np

import lanewise as lw
from lanewise.runtime import llvm

PAGE, APART, MANY = 4096, 4 << 30, 64
NOTHING, PRIVATE_WITHOUT_RESERVE = 0, 0x4022  # PROT_NONE; MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE of Linux


@lw.elementwise
def twice(x: lw.f32) -> lw.f32:
    return x * 2.0 + 1.0


def mapped(size: int) -> int:
    return libc.mmap(None, size, NOTHING, PRIVATE_WITHOUT_RESERVE, -1, 0)


libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
values = np.arange(8, dtype=np.float32)
twice(values[:2])  # what is needed once lies where it is by now
llvm._jit()  # pyright: ignore[reportPrivateUsage]
blocks = [mapped(APART) for _ in range(MANY)]
while mapped(PAGE) > min(blocks):  # the gaps above them
    pass
for block in blocks:
    libc.munmap(block + APART // 2, 2 * PAGE)


@lw.elementwise
def moved(x: lw.f32) -> lw.f32:
    return lw.select(x > 3.0, x * 0.3, x - 0.7)


assert np.allclose(moved(values), np.where(values > 3, values * 0.3, values - 0.7))
