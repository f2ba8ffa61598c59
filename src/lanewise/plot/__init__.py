"""Pictures of runs: PNG files drawn without any global state.

Importing this package does not import matplotlib.
"""
