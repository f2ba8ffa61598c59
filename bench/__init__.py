"""Benchmarks: one question a file. `python -m bench.NAME`."""

import os

# Threads of NumPy's BLAS spin on after each call, on the cores of whoever is measured next: a
# matrix product of ours took 1.3 times as long in turns with NumPy's. They sleep after 2^20 cycles
# instead. Read when NumPy is imported.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")
