"""Sites of a lattice: kinds, edges of the box, words, streaming forms, and the array that holds the populations."""
