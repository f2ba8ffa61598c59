"""Elements in place, one after another, from the newest values."""
