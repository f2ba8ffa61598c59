"""Whole arrays, whose elements have to do with each other.

Prefix sums and histograms, on a CPU and on a GPU.
"""
