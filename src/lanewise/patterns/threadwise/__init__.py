"""Kernels with a thread for each index, which read and write whole arrays: `@lw.threadwise`."""
