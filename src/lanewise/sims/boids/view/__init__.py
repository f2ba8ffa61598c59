"""Pictures and films of flocks."""
