"""Ladders: series of versions of one kernel, each a plan of the same user function, measured beside a paper's figures.

rung.py is what a ladder consists of, run.py how a rung is checked and timed, report.py how the result is shown; every
other file is one ladder. The text for users is docs/ladders.md.
"""
