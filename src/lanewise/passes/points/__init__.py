"""A thread for each index becomes a thread for a small box of points: blocks, merging, staging,
prefetching, wide accesses.
"""
