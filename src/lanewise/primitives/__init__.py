"""Whole arrays, whose elements have to do with each other: prefix sums and histograms, on a CPU and
on a GPU.
"""
