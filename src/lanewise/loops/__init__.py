"""Time loops that users write: bound calls in order, step after step."""
