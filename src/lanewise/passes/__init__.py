"""Kernel to kernel: one file an optimisation."""
