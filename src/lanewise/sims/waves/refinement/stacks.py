"""Stacks that follow each other: some of them, or taken together."""

from __future__ import annotations

import numpy as np

from lanewise.sims.waves.prepared import SearchData, unchanging
from lanewise.support.errors import InputError


def regrouped(data: SearchData, stacks: int) -> SearchData:
    """The same SFTs in fewer stacks, each of as many of the present ones; `stacks=1` is a coherent
    search of all.

    Bins, noise and weights are those of the same SFTs prepared in such stacks: weights have the
    mean 1 over each. Raises InputError for more stacks than there are, or none.
    """
    if not 1 <= stacks <= data.stacks:
        raise InputError(
            f"{stacks} stacks are requested; wanted 1 to {data.stacks}, of which they are made"
        )
    detectors = len(data.detectors)
    old = np.repeat(np.arange(data.stacks * detectors), np.diff(data.group))
    stack, detector = np.divmod(old, detectors)
    into = np.arange(data.stacks) * stacks // data.stacks
    order = np.lexsort((data.middle, detector, into[stack]))
    group = into[stack] * detectors + detector
    raw = data.weight * data.sinv_tsft[stack] * 2 / data.duration**2
    mean = np.bincount(into[stack], raw, stacks) / np.bincount(into[stack], minlength=stacks)
    bins = np.diff(data.offset)
    places = np.concatenate(
        [np.arange(a, a + n) for a, n in zip(data.offset[:-1][order], bins[order], strict=True)]
    )
    edges = np.searchsorted(into, np.arange(stacks + 1))
    span = np.stack(
        [data.span[edges[:-1], 0], np.maximum.reduceat(data.span[:, 1], edges[:-1])], axis=1
    )
    made = SearchData(
        data.detectors,
        stacks,
        data.duration,
        data.data[places],
        np.concatenate([[0], np.cumsum(bins[order])]),
        data.first_bin[order],
        np.concatenate([[0], np.cumsum(np.bincount(group, minlength=stacks * detectors))]),
        data.middle[order],
        (raw / mean[into[stack]])[order],
        data.duration**2 * mean / 2,
        span,
        data.noise_bins,
        data.dterms,
        data.weights_of_dterms,
    )
    return unchanging(made)


def some_stacks(data: SearchData, first: int, end: int) -> SearchData:
    """The stacks from `first` on, without `end`: parts of the same arrays."""
    detectors = len(data.detectors)
    group = data.group[first * detectors : end * detectors + 1]
    sfts = slice(int(group[0]), int(group[-1]))
    offset = data.offset[sfts.start : sfts.stop + 1]
    return SearchData(
        data.detectors,
        end - first,
        data.duration,
        data.data[offset[0] : offset[-1]],
        offset - offset[0],
        data.first_bin[sfts],
        group - group[0],
        data.middle[sfts],
        data.weight[sfts],
        data.sinv_tsft[first:end],
        data.span[first:end],
        data.noise_bins,
        data.dterms,
        data.weights_of_dterms,
    )
