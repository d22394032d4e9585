"""`python -m abd` runs the command `abd`."""

from abd.cli import command

command()
