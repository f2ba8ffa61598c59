"""Arrays of records: their memory, their indices, what becomes of them, and their files."""
