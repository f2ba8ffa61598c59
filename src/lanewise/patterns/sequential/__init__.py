"""Loops that one thread runs from end to end."""
