"""Pictures and films of flows."""
