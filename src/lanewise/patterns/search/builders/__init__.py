"""What fills search structures: on the host by loops that LLVM compiles, on a GPU with CUDA."""
