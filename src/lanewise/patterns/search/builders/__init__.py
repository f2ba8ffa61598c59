"""What fills search structures: on the host with Numba, on a GPU with CUDA."""
