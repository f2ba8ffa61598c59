"""Patterns: all that belongs to one lies in its folder: builder, kernel, calls, passes and
its own structures.
"""
