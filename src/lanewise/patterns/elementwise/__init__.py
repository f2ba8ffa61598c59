"""One element at a time: `@lw.elementwise`, and totals over all elements."""
