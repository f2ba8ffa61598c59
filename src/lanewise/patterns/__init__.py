"""The wings: all that belongs to one pattern lies in its folder.

Builder, kernel, calls, passes and structures of its own.
"""
