"""Devices, caches, compilation and launches. The only place that touches CUDA."""
