"""What can be decided about a kernel, and the kinds of devices that it is decided for."""
