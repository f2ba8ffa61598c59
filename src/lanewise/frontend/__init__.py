"""From Python source to IR functions."""
