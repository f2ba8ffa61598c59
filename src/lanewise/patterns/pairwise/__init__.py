"""Sums over pairs: `@lw.pairwise`."""
