"""`python -m deploy.pictures`: draw all pictures into docs/images."""

from __future__ import annotations

import sys

from deploy.pictures import bound, brackets, cuts, repeats, sharing

for picture in (brackets, sharing, bound, repeats, cuts):
    sys.stdout.write(f"{picture.draw()}\n")
