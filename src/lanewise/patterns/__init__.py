"""From an element function to a naive kernel: one file a pattern."""
