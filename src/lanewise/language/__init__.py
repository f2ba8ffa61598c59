"""What users declare and write: types, vectors, records, values, lattices, random numbers."""
