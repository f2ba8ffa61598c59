"""The tree of far fields: its shape, its order, and calls over it."""
