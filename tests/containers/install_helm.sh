#!/usr/bin/env bash
# Builds helm with Go into the directory $1, unless it is there or on PATH. Prints the path of helm.
set -euo pipefail
directory=$1
version=v3.22.0
# Built as a module, helm would render for Kubernetes 1.20.
kubernetes=37

if command -v helm; then
  exit
fi
if [ ! -x "$directory/helm" ]; then
  package=helm.sh/helm/v3/pkg/chartutil
  GOBIN=$(mkdir -p "$directory" && cd "$directory" && pwd) go install \
    -ldflags "-X $package.k8sVersionMajor=1 -X $package.k8sVersionMinor=$kubernetes" "helm.sh/helm/v3/cmd/helm@$version" >&2
fi
echo "$directory/helm"
