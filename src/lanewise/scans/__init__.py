"""Prefix sums of whole arrays: `lw.cumsum`, on a CPU and on a GPU."""
