"""Patterns: all that belongs to one lies in its folder: builder, kernel, calls, passes and
structures of its own.
"""
