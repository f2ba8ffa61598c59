"""Multipole and local expansions of pair functions, as IR functions made from what was proved."""
