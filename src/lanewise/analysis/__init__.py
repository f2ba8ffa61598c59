"""Facts about the IR that passes share."""
