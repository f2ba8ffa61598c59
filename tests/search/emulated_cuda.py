"""CUDA kernels of text run on a CPU: the text is compiled as C++, the threads of a block are fibres that meet at
barriers.

For kernels whose blocks wait only for blocks with smaller numbers: blocks run one after the other. Threads of a warp
must meet at every warp function together, all 32 of them. What it cannot show are races between blocks; what it can is
everything else, without a GPU.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from lanewise.runtime.cache import cache_root, content_key

COMPILER = shutil.which("g++")
OPTIONS = ("-O1", "-std=c++17", "-fPIC", "-ffp-contract=off", "-w")
ROOT = cache_root() / "emulated"  # as this module is imported: a test may name another one

_SHIM = r"""
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>
#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(n) alignas(n)
using std::fabs; using std::floor; using std::fmax; using std::fmin;
struct Dim { int x; };
static Dim threadIdx, blockIdx, gridDim;
struct Fibre { ucontext_t context; bool done; int waits; int ops; std::vector<char> stack; };  // waits: 0 no, 1 block, 2 warp
static std::vector<Fibre> fibres;
static ucontext_t scheduler;
static int current;
static unsigned long long slots[2][2048];
static void wait_for(int what) { fibres[current].waits = what; swapcontext(&fibres[current].context, &scheduler); }
static void __syncthreads() { wait_for(1); }
static void __syncwarp() { wait_for(2); }
static unsigned long long *exchange(unsigned long long mine) {
    unsigned long long *place = slots[fibres[current].ops++ & 1];
    place[current] = mine;
    wait_for(2);
    return place + current / 32 * 32;
}
template <class T> static unsigned long long bits(T v) { unsigned long long b = 0; memcpy(&b, &v, sizeof v); return b; }
template <class T> static T value(unsigned long long b) { T v; memcpy(&v, &b, sizeof v); return v; }
static unsigned __ballot_sync(unsigned, bool set) {
    unsigned long long *all = exchange(set);
    unsigned lanes = 0;
    for (int lane = 0; lane < 32; ++lane) lanes |= (unsigned)all[lane] << lane;
    return lanes;
}
template <class T> static T __shfl_up_sync(unsigned, T v, int step) {
    const int lane = current % 32;
    return value<T>(exchange(bits(v))[lane >= step ? lane - step : lane]);
}
template <class T> static T __shfl_sync(unsigned, T v, int lane) { return value<T>(exchange(bits(v))[lane]); }
template <class T> static T __shfl_xor_sync(unsigned, T v, int mask) {
    const int lane = current % 32;
    return value<T>(exchange(bits(v))[lane ^ mask]);
}
struct float4 { float x, y, z, w; };
template <class T> static T __ldcs(const T *from) { return *from; }
template <class T> static void __stcs(T *to, T v) { *to = v; }
static int __ffs(unsigned v) { return __builtin_ffs((int)v); }
static int __popc(unsigned v) { return __builtin_popcount(v); }
static float __int_as_float(int v) { return value<float>((unsigned)v); }
static int __float_as_int(float v) { return (int)bits(v); }
static double __longlong_as_double(long long v) { return value<double>((unsigned long long)v); }
static long long __double_as_longlong(double v) { return (long long)bits(v); }
template <class T> static T atomicAdd(T *to, T v) { const T old = *to; *to += v; return old; }
template <class T> static T atomicMin(T *to, T v) { const T old = *to; *to = std::min(old, v); return old; }
template <class T> static T atomicMax(T *to, T v) { const T old = *to; *to = std::max(old, v); return old; }
static void (*body)();
static void enter() { body(); fibres[current].done = true; swapcontext(&fibres[current].context, &scheduler); }
static bool arrived(int first, int last, int what) {
    for (int t = first; t < last; ++t) if (!fibres[t].done && fibres[t].waits != what) return false;
    return true;
}
static void run_block(int threads) {
    if ((int)fibres.size() != threads) fibres = std::vector<Fibre>(threads);
    for (int t = 0; t < threads; ++t) {
        Fibre &f = fibres[t];
        f.done = false; f.waits = 0; f.ops = 0; f.stack.resize(1 << 15);
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.data(); f.context.uc_stack.ss_size = f.stack.size(); f.context.uc_link = &scheduler;
        makecontext(&f.context, enter, 0);
    }
    for (;;) {
        bool all_done = true, moved = false;
        for (int t = 0; t < threads; ++t) {
            if (fibres[t].done || fibres[t].waits) continue;
            current = t; threadIdx.x = t; moved = true;
            swapcontext(&scheduler, &fibres[t].context);
        }
        for (int w = 0; w < threads; w += 32)
            if (arrived(w, w + 32, 2)) for (int t = w; t < w + 32; ++t) if (fibres[t].waits == 2) { fibres[t].waits = 0; moved = true; }
        if (arrived(0, threads, 1)) for (int t = 0; t < threads; ++t) if (fibres[t].waits == 1) { fibres[t].waits = 0; moved = true; }
        for (int t = 0; t < threads; ++t) all_done &= fibres[t].done;
        if (all_done) return;
        if (!moved) abort();  // threads part at a barrier
    }
}
"""


@cache
def _shim() -> Path:
    """What all kernels include, read by the compiler once: that takes it longer than a kernel."""
    return _compiled(_SHIM, "shim.h.gch", "-x", "c++-header")


def _compiled(source: str, name: str, *options: str) -> Path:
    """A file that the compiler makes, which processes and sessions share as they do compiled kernels."""
    assert COMPILER is not None
    folder = ROOT / content_key(_version(), source, *OPTIONS, *options)
    if not (folder / name).exists():
        ROOT.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=ROOT))
        text = made / ("shim.h" if name.endswith(".gch") else "kernel.cpp")
        text.write_text(source)
        subprocess.run([COMPILER, *OPTIONS, *options, "-o", name, text.name], cwd=made, check=True)
        try:
            made.rename(folder)
        except OSError:  # another process was faster
            shutil.rmtree(made)
    return folder / name


@cache
def _version() -> str:
    return subprocess.run([str(COMPILER), "--version"], capture_output=True, text=True, check=True).stdout


@cache
def _library(text: str, name: str) -> Any:
    """The compiled kernel; its arguments are packed into one structure."""
    found = re.search(rf"{name}_kernel\(([^)]*)\)", text)
    assert found is not None
    parameters = [" ".join(p.split()) for p in found.group(1).split(",")]
    names = [re.findall(r"\w+", p)[-1] for p in parameters]
    fields = "".join(f"    {p};\n" for p in parameters)
    call = ", ".join(f"given->{n}" for n in names)
    entry = (
        f"struct Arguments {{\n{fields}}};\nstatic Arguments *given;\nstatic void call() {{ {name}_kernel({call}); }}\n"
        'extern "C" void launch(int blocks, int threads, Arguments *arguments) {\n    given = arguments; body = call; gridDim.x = blocks;\n'
        "    for (int b = 0; b < blocks; ++b) { blockIdx.x = b; run_block(threads); }\n}\n"
    )
    source = f'#include "{_shim().with_suffix("")}"\n{text}{entry}'
    library = ctypes.CDLL(str(_compiled(source, "kernel.so", "-shared")))
    return library, tuple(
        (n, ctypes.c_void_p if "*" in p else ctypes.c_longlong if "long long" in p else ctypes.c_int)
        for n, p in zip(names, parameters, strict=True)
    )


def launch(text: str, name: str, blocks: int, threads: int, *arguments: Any) -> None:
    """Run a kernel: pointers as integers (0 is null), everything else as int."""
    library, fields = _library(text, name)
    structure = type("Arguments", (ctypes.Structure,), {"_fields_": fields})
    library.launch(blocks, threads, ctypes.byref(structure(*(int(a) for a in arguments))))
