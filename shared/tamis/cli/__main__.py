"""`python -m tamis.cli`: the command `tamis`."""

from tamis.cli import main

main(prog_name="tamis")
