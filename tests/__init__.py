"""The tests; a package, so that no other package called `tests` can stand in for it in a subprocess."""
