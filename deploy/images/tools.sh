#!/bin/sh
# For the stage that builds: a C compiler, and the packages of deploy/build.lock in /build.
set -eu
here=$(dirname "$0")
headers=$(python -c 'import os, sysconfig; print(os.path.exists(sysconfig.get_path("include") + "/Python.h"))')
apt-get update -q
# Debian's own Python has its headers in a package; the image python:3.11-slim carries them.
apt-get install -qy --no-install-recommends gcc g++ libc6-dev $([ "$headers" = True ] || echo python3-dev)
rm -rf /var/lib/apt/lists/*
python -m venv /build
sh "$here/install.sh" /build build deploy/build.lock
