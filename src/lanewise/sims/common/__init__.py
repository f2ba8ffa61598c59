"""What the products have in common: how a run goes on, what its command can be told, and the files
that it writes.
"""
