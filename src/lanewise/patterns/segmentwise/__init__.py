"""Sums over the items of segments: `@lw.segmentwise`."""
