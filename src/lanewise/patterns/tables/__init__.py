"""Tables: arrays that the functions of elements, pairs and sites read by index.

Threadwise functions have their own arrays.
"""
