"""Kernels as differentiable functions of other libraries: PyTorch and JAX."""
