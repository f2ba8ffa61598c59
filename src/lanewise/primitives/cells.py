"""The kernels that fill cells on a GPU: count, two for a scan, fill, and two that put each cell in
order.

Atomics hand out places within a cell in any order; the last two passes rank its members by index,
so that the order never depends on the race. Members of crowded cells are sorted, a cell a block;
those of all others compare themselves with the few others of their cell. The scan leaves the
counters zero for the next build. A CPU sorts (`patterns.search.builders.cells`).
"""

from __future__ import annotations

from lanewise.language.types import COMPONENTS, Scalar
from lanewise.layouts import Arrangement
from lanewise.primitives.survey import coordinate_text
from lanewise.runtime.cuda_spelling import TYPES

THREADS = 256
EACH = 16  # cells that one thread scans
TILE = THREADS * EACH
CROWDED = 32  # members of a cell, from which on they are sorted
SORTERS = 132  # blocks that sort crowded cells: most of the time there are none
SORTING_THREADS = 512
SHARED = 8192  # members that are sorted in shared memory

_COUNT = """// The cell of every source, and how many came to that cell before.
__device__ __forceinline__ int along(T x, T low, T inverse, T last, T size, T inverse_size)
{{
    T w = x - low;
    if ({periodic}) {{
        w = {fma}(-{floor}(w * inverse_size), size, w);
        if (w < 0) w = w + size;
        if (w >= size) w = w - size;
    }}
    const T scaled = w * inverse;
    return scaled > 0 ? (scaled > last ? (int)last : (int)scaled) : 0;
}}
extern "C" __global__ void __launch_bounds__({threads}) cells_count_kernel(
    {columns}, int *__restrict__ counts, int2 *__restrict__ place, int n,
    {values})
{{
    const int i = blockIdx.x * {threads} + threadIdx.x;
    if (i >= n) return;
    int cell = 0;
{body}
    place[i] = make_int2(cell, atomicAdd(counts + cell, 1));
}}
"""

_SUMS = """// How many sources each tile of cells has.
extern "C" __global__ void __launch_bounds__({threads}) cells_sums_kernel(
    const int *__restrict__ counts, int *__restrict__ sums, int *__restrict__ crowded)
{{
    const int4 *tile = (const int4 *)(counts + (size_t)blockIdx.x * {tile});
    int total = 0;
    for (int k = 0; k < {each} / 4; ++k) {{
        const int4 c = tile[k * {threads} + threadIdx.x];
        total += c.x + c.y + c.z + c.w;
    }}
    __shared__ int warps[{threads} / 32];
    for (int away = 16; away > 0; away /= 2) total += __shfl_xor_sync(0xffffffffu, total, away);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = total;
    __syncthreads();
    if (threadIdx.x == 0) {{
        total = 0;
        for (int w = 0; w < {threads} / 32; ++w) total += warps[w];
        sums[blockIdx.x] = total;
        if (blockIdx.x == 0) crowded[0] = 0;
    }}
}}
"""

_SCAN = """// The first place of every cell; the list of crowded cells; counters are zero again.
__device__ __forceinline__ int before_in_block(int value, int *warps, int *total)  // the sum over the threads before this one
{{
    int sum = value;
    for (int away = 1; away < 32; away *= 2) {{
        const int other = __shfl_up_sync(0xffffffffu, sum, away);
        if (threadIdx.x % 32 >= away) sum += other;
    }}
    if (threadIdx.x % 32 == 31) warps[threadIdx.x / 32] = sum;
    __syncthreads();
    int before = 0, all = 0;
    for (int w = 0; w < {threads} / 32; ++w) {{
        if (w < threadIdx.x / 32) before += warps[w];
        all += warps[w];
    }}
    __syncthreads();
    *total = all;
    return before + sum - value;
}}
extern "C" __global__ void __launch_bounds__({threads}) cells_scan_kernel(
    int *__restrict__ counts, const int *__restrict__ sums, int *__restrict__ starts, int *__restrict__ crowded)
{{
    __shared__ int warps[{threads} / 32];
    int earlier = 0, base;
    for (int b = threadIdx.x; b < blockIdx.x; b += {threads}) earlier += sums[b];
    before_in_block(earlier, warps, &base);
    for (int k = 0; k < {each} / 4; ++k) {{
        const size_t at = (size_t)blockIdx.x * ({tile} / 4) + k * {threads} + threadIdx.x;
        const int4 c = ((const int4 *)counts)[at];
        int all;
        int4 s;
        s.x = base + before_in_block(c.x + c.y + c.z + c.w, warps, &all);
        s.y = s.x + c.x;
        s.z = s.y + c.y;
        s.w = s.z + c.z;
        base += all;
        ((int4 *)starts)[at] = s;
        if (c.x | c.y | c.z | c.w) {{
            ((int4 *)counts)[at] = make_int4(0, 0, 0, 0);
            if (c.x > {crowded}) crowded[1 + atomicAdd(crowded, 1)] = at * 4;
            if (c.y > {crowded}) crowded[1 + atomicAdd(crowded, 1)] = at * 4 + 1;
            if (c.z > {crowded}) crowded[1 + atomicAdd(crowded, 1)] = at * 4 + 2;
            if (c.w > {crowded}) crowded[1 + atomicAdd(crowded, 1)] = at * 4 + 3;
        }}
    }}
}}
"""

_FILL = """// The members of every cell, in any order.
extern "C" __global__ void __launch_bounds__({threads}) cells_fill_kernel(
    const int2 *__restrict__ place, const int *__restrict__ starts, int *__restrict__ members, int n)
{{
    const int i = blockIdx.x * {threads} + threadIdx.x;
    if (i >= n) return;
    const int2 p = place[i];
    members[starts[p.x] + p.y] = i;
}}
"""

_SORT = """// Sort the members of crowded cells, one cell a block: a bitonic network that compares upwards only, for any length.
__device__ __forceinline__ void exchange(int *a, int i, int other, int length)
{{
    if (other <= i || other >= length) return;
    const int low = a[i], high = a[other];
    if (low > high) {{
        a[i] = high;
        a[other] = low;
    }}
}}
__device__ void sort(int *a, int length)
{{
    for (int size = 2; size / 2 < length; size *= 2) {{
        for (int i = threadIdx.x; i < length; i += {sorting_threads}) exchange(a, i, i ^ (size - 1), length);
        __syncthreads();
        for (int away = size / 4; away > 0; away /= 2) {{
            for (int i = threadIdx.x; i < length; i += {sorting_threads}) exchange(a, i, i ^ away, length);
            __syncthreads();
        }}
    }}
}}
extern "C" __global__ void __launch_bounds__({sorting_threads}) cells_sort_kernel(
    const int *__restrict__ crowded, const int *__restrict__ starts, int *__restrict__ members)
{{
    __shared__ int some[{shared}];
    const int cells = crowded[0];
    for (int c = blockIdx.x; c < cells; c += gridDim.x) {{
        const int begin = starts[crowded[1 + c]], length = starts[crowded[1 + c] + 1] - begin;
        if (length > {shared}) {{
            sort(members + begin, length);
            continue;
        }}
        for (int i = threadIdx.x; i < length; i += {sorting_threads}) some[i] = members[begin + i];
        __syncthreads();
        sort(some, length);
        for (int i = threadIdx.x; i < length; i += {sorting_threads}) members[begin + i] = some[i];
        __syncthreads();
    }}
}}
"""

_RANK = """// The members of every cell in the order of their indices.
extern "C" __global__ void __launch_bounds__({threads}) cells_rank_kernel(
    const int2 *__restrict__ place, const int *__restrict__ starts, const int *__restrict__ members,
    int *__restrict__ order, int n)
{{
    const int p = blockIdx.x * {threads} + threadIdx.x;
    if (p >= n) return;
    const int i = members[p], cell = place[i].x;
    const int begin = starts[cell], end = starts[cell + 1];
    int at = p;
    if (end - begin <= {crowded}) {{
        at = begin;
        for (int q = begin; q < end; ++q) at += members[q] < i;
    }}
    order[at] = i;
}}
"""


def kernel_texts(
    arrangement: Arrangement, leaves: tuple[str, ...], precision: Scalar, *, periodic: bool
) -> dict[str, str]:
    """The texts by the names of the kernels, for sources in this arrangement."""
    numbers = {
        "threads": THREADS,
        "each": EACH,
        "tile": TILE,
        "crowded": CROWDED,
        "shared": SHARED,
        "sorting_threads": SORTING_THREADS,
    }
    names, kind = COMPONENTS[: len(leaves)], TYPES[precision]
    values = ", ".join(
        f"T {n}_{c}" for c in names for n in ("low", "inverse", "last", "size", "inverse_size")
    )
    suffix = "f" if precision.size == 4 else ""
    count = _COUNT.format(
        columns=", ".join(f"const char *__restrict__ {c}" for c in names),
        values=values.replace(", T low", ",\n    T low"),
        body="\n".join(
            _coordinate(arrangement, leaf, c)
            for leaf, c in reversed(list(zip(leaves, names, strict=True)))
        ),
        periodic="true" if periodic else "false",
        fma=f"fma{suffix}",
        floor=f"floor{suffix}",
        **numbers,
    )
    others = {"sums": _SUMS, "scan": _SCAN, "fill": _FILL, "sort": _SORT, "rank": _RANK}
    texts = {f"cells_{name}": text.format(**numbers) for name, text in others.items()}
    return {"cells_count": f"using T = {kind};\n{count}", **texts}


def _coordinate(arrangement: Arrangement, leaf: str, axis: str) -> str:
    """Add what one coordinate says about the cell's number."""
    arguments = ", ".join(f"{n}_{axis}" for n in ("low", "inverse", "last", "size", "inverse_size"))
    return (
        f"    cell = cell * ((int)last_{axis} + 1) + "
        f"along({coordinate_text(arrangement, leaf, axis, 'i')}, {arguments});"
    )
