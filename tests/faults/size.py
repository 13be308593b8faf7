"""Size of the faults that take a number of readings: 100,000, or TAMIS_FAULTS_READINGS for a short run."""

from __future__ import annotations

import os

READINGS = int(os.environ.get("TAMIS_FAULTS_READINGS", "100000"))
