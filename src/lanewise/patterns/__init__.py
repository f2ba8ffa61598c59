"""The wings: all that belongs to one pattern lies in its folder: builder, kernel, calls, passes and
structures of its own.
"""
