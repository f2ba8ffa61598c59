"""From a reference kernel and a plan to a program: which passes run, in which order."""
