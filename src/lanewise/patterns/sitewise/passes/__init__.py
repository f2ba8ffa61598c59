"""Passes that only kernels over sites have."""
