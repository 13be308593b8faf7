#!/bin/sh
# The jars that Spark needs besides PySpark's own, in /opt/tamis/jars, compared with deploy/jars/SHA256SUMS.
set -eu
mkdir -p /jars /opt/tamis/jars
# Jars that are there already are compared too, and fetched only if they differ.
if [ -d /src/deploy/images/wheels/jars ]; then cp -r /src/deploy/images/wheels/jars/. /jars/; fi
PYTHONPATH=/src/shared PYTHONDONTWRITEBYTECODE=1 TAMIS_JARS=/jars /opt/tamis/bin/python -m tamis.java.jars
mv /jars/spark /opt/tamis/jars/spark
rm -rf /jars
