"""Which structure and plan are fastest for a call over a search.

Candidates, measurements, what was found.
"""
