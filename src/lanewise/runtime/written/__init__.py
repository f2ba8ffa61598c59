"""Kernels for a CPU that are written by hand, as text of a small part of Python, and become text of
LLVM's language: builders of searches, sorts, prefix sums, pictures.

`functions.py` says what of Python there is, `kinds.py` which type a number has.
"""
