"""Tables: arrays that the functions of elements, pairs and sites read by index.

Threadwise functions have arrays of their own.
"""
