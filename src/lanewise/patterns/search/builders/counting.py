"""A counting sort by cell on all threads: each counts a share of the sources in its own cells, and
the counts of all are merged (the future work of J. Breitbart's chapter 8). Sources of one cell stay
in their order, so that the result does not depend on how many shares there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lanewise.runtime.cpu import own_kernel, run_priced, run_shares, threads_worth

COUNTED = 2.0  # nanoseconds that a source takes to be counted, and as many to be placed
SUMMED = 1.0  # those of a cell of one share
CELLS = 4096  # of them a thread merges at a time
# cells at most for each source, those of all shares together: more take longer than the sources
MERGED = 4

ALONE = """def counting_sort_kernel(cells, starts, order):
    starts[:] = 0
    for i in range(len(cells)):
        starts[cells[i] + 1] += 1
    for c in range(1, len(starts)):
        starts[c] += starts[c - 1]
    for i in range(len(cells)):
        c = cells[i]
        order[starts[c]] = i
        starts[c] += 1
    for c in range(len(starts) - 1, 0, -1):
        starts[c] = starts[c - 1]
    starts[0] = 0
"""

# Shares are rows (first, last) of sources; each has a row of counts, later of places.
COUNT = """def count_shares_kernel(cells, shares, places, begin, end):
    for s in range(begin, end):
        for c in range(places.shape[1]):
            places[s, c] = 0
        for i in range(shares[s, 0], shares[s, 1]):
            places[s, cells[i]] += 1
"""

TOTALS = """def total_cells_kernel(places, size, totals, begin, end):
    for piece in range(begin, end):
        total = 0
        for c in range(piece * size, min((piece + 1) * size, places.shape[1])):
            for s in range(places.shape[0]):
                total += places[s, c]
        totals[piece] = total
"""

MERGE = """def merge_shares_kernel(places, size, firsts, starts, begin, end):
    for piece in range(begin, end):
        first = firsts[piece]
        for c in range(piece * size, min((piece + 1) * size, places.shape[1])):
            starts[c] = first
            for s in range(places.shape[0]):
                here = places[s, c]
                places[s, c] = first
                first += here
"""

FILL = """def fill_shares_kernel(cells, shares, places, order, begin, end):
    for s in range(begin, end):
        for i in range(shares[s, 0], shares[s, 1]):
            c = cells[i]
            order[places[s, c]] = i
            places[s, c] += 1
"""


def sort_by_cell(
    cells: NDArray[np.int32],
    starts: NDArray[np.int32],
    order: NDArray[np.int32],
    shares: int | None = None,
) -> None:
    """Fill `starts`, the first place of each cell and the number of sources, and `order`, the
    sources in the order of their cells. shares: how many; None: as many as pay.
    """
    count, total = len(cells), len(starts) - 1
    if shares is None:
        shares = min(threads_worth(COUNTED * count), MERGED * count // max(1, total))
    if shares <= 1:
        own_kernel(ALONE, "counting_sort")(cells, starts, order)
        return
    edges = np.linspace(0, count, shares + 1).astype(np.int64)
    ends = np.ascontiguousarray(np.stack([edges[:-1], edges[1:]], axis=1))
    places = np.empty((shares, total), np.int32)
    run_shares(own_kernel(COUNT, "count_shares"), (cells, ends, places), shares)
    pieces = -(-total // CELLS)
    totals: NDArray[Any] = np.empty(pieces, np.int64)
    each = SUMMED * CELLS * shares
    run_priced(own_kernel(TOTALS, "total_cells"), (places, CELLS, totals), pieces, each)
    firsts = np.cumsum(totals) - totals
    merge = own_kernel(MERGE, "merge_shares")
    run_priced(merge, (places, CELLS, firsts, starts), pieces, each)
    starts[total] = count
    run_shares(own_kernel(FILL, "fill_shares"), (cells, ends, places, order), shares)
