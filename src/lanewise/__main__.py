"""`python -m lanewise` is the command line."""

from lanewise.cli.main import program

program()
