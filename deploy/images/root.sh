#!/bin/sh
# The root of every image, made of the base: the user, its directories for volumes, and nothing that only installs, compiles or documents.
set -eu
groupadd --system --gid 10001 tamis
useradd --system --uid 10001 --gid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin tamis
install -d -o tamis -g tamis -m 700 /data /run/tamis
# Python without its tests, installers and development files; Debian has them in one place, the image of Docker in another.
library=$(python -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
for part in ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo 'config-3*' site-packages/pip 'site-packages/pip-*' \
  site-packages/setuptools 'site-packages/setuptools-*' site-packages/wheel 'site-packages/wheel-*'; do
  rm -rf "$library"/$part
done
find "$library" -depth -type d \( -name test -o -name tests \) -exec rm -r {} +
rm -rf /usr/local/bin/pip* /usr/local/bin/idle* /usr/local/bin/pydoc* /usr/local/include /usr/share/python-wheels \
  /usr/lib/python3/dist-packages/pip* /usr/lib/python3/dist-packages/setuptools* /usr/bin/pip* /usr/lib/*/perl-base
# Byte code is made here: with a read-only root no start could keep it.
python -m compileall -q "$library" || true
# No package is installed from here on. The database says what is: scanners read it.
for package in apt perl perl-base perl-modules-5.36 libperl5.36 libapt-pkg6.0 debconf e2fsprogs libext2fs2 logsave \
  gpgv libgnutls30 libp11-kit0 libunistring2 libidn2-0 libhogweed6 libnettle8 libtasn1-6; do
  dpkg --purge --force-all "$package" >/dev/null 2>&1 || true
done
rm -rf /usr/share/perl /usr/share/perl5 /usr/lib/*/libperl* /usr/lib/*/perl* /var/lib/apt /var/cache/* /var/log/* /root/.cache \
  /usr/share/man /usr/share/info /usr/share/locale /usr/share/lintian /usr/share/bash-completion /usr/share/gdb \
  /var/lib/dpkg/info /usr/lib/apt /usr/share/bug /usr/lib/*-linux-gnu/gconv
find /usr/share/doc -type f ! -name copyright -delete 2>/dev/null || true
# Nothing may gain rights.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
