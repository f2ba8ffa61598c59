"""The kernels that a user makes with a decorator: arguments, compilation, calls."""
