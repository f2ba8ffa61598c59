"""What the whole house stands on: checks of arguments, names, installation hints, Ctrl-C."""
