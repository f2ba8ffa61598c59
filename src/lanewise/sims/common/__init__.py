"""What the products have in common: how a run continues, which options its command has, and the
files that it writes.
"""
