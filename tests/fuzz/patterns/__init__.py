"""The patterns that random programs are written for: a file and a line each."""

from __future__ import annotations

from tests.fuzz.patterns import elements, gradients, pairs, populations, segments, sites, threadwise

PATTERNS = (
    threadwise.PATTERN,
    elements.PATTERN,
    segments.PATTERN,
    pairs.PAIRS,
    pairs.SEARCHES,
    sites.STENCILS,
    sites.FLOWS,
    sites.COUPLINGS,
    gradients.PATTERN,
    populations.PATTERN,
)
