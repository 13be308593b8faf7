#!/bin/sh
# Tamis's own wheel in /wheels, and its kernels in /kernels, compiled ahead of time.
set -eu
/build/bin/pip wheel -q --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels .
/build/bin/pip install -q --no-cache-dir --no-index --no-deps /wheels/*.whl
/build/bin/python -m tamis.precompile_kernels /kernels
