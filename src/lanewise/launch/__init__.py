"""Text and memory become a call: the one place where pipeline, emission, runtime and tuned plans
meet.
"""
