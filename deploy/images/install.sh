#!/bin/sh
# install.sh VENV NAME LOCK: install the packages of a lock, which have the hashes written there and no others.
# Where deploy/images/wheels has wheels of the lock, with a lock of their own hashes, nothing is fetched:
# tests/containers/wheels.py makes them once for all images.
set -eu
wheels=$(dirname "$0")/wheels
pip="/build/bin/pip --python $1/bin/python install --no-cache-dir --disable-pip-version-check --root-user-action ignore -q"
if [ -f "$wheels/$2.lock" ]; then
  $pip --require-hashes --no-index --find-links "$wheels" -r "$wheels/$2.lock"
else
  $pip --require-hashes -r "$3"
fi
