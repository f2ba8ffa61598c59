"""Text and memory become a call.

The one place where pipeline, emission, runtime and tuned plans meet.
"""
