"""Which structure and plan are fastest for a call over a search: candidates, measurements, what was
found.
"""
