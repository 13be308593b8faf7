#!/bin/sh
# service.sh NAME: /opt/tamis as the image of a service has it: packages, Tamis, kernels, no pip, no tests.
set -eu
here=$(dirname "$0")
python -m venv --without-pip /opt/tamis
sh "$here/install.sh" /opt/tamis "$1" "services/$1/requirements.lock"
/build/bin/pip --python /opt/tamis/bin/python install -q --no-cache-dir --no-index --no-deps /wheels/*.whl
cp -r /kernels /opt/tamis/kernels
install -m 755 "$here/healthcheck.py" /opt/tamis/bin/healthcheck
# What is installed, before parts of it are removed that don't run.
mkdir -p /opt/tamis/share/doc
/build/bin/cyclonedx-py environment --output-reproducible --of JSON -o /opt/tamis/share/doc/sbom.cdx.json /opt/tamis/bin/python
packages=$(/opt/tamis/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
find "$packages" -depth -type d -name tests -exec rm -r {} +
# Headers and sources of C, types for checkers; libraries for file systems and servers that nothing here talks to.
find "$packages" -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.pxd' -o -name '*.pyx' -o -name '*.pxi' -o -name '*.pyi' -o -name '*.a' -o -name '*.c' \) -delete
rm -rf "$packages"/numpy/f2py "$packages"/pyarrow/include "$packages"/pyarrow/src \
  "$packages"/pyarrow/*flight* "$packages"/pyarrow/*s3* "$packages"/pyarrow/_gcsfs* "$packages"/pyarrow/_azurefs*
# Numba's threads by OpenMP and TBB: no kernel is parallel.
rm -f "$packages"/numba/np/ufunc/omppool* "$packages"/numba/np/ufunc/tbbpool*
# Pip unpacks the links to a library as copies of it.
for library in "$packages"/pyarrow/libarrow_python.so "$packages"/pyarrow/libarrow_python.so.*.*; do
  if [ -f "$library" ]; then ln -sf "$(basename "$packages"/pyarrow/libarrow_python.so.????)" "$library"; fi
done
# The other services.
for other in alerts edge joiner registry; do
  if [ "$other" != "$1" ]; then rm -r "$packages/tamis_$other"; fi
done
# Symbols for debuggers. NumPy's and Kafka's libraries were changed by auditwheel, and can't be loaded after this.
find "$packages" -type f -name '*.so*' ! -path '*.libs/*' ! -path '*/numpy/*' ! -path '*/confluent_kafka/*' ! -path '*/flint/*' ! -path '*/numba/*' \
  -exec strip --strip-unneeded {} +
/opt/tamis/bin/python "$here/load_libraries.py" "$packages"
