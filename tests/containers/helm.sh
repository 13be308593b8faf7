#!/usr/bin/env bash
# Checks of the Helm chart. helm is built into the directory $1 unless it is on PATH; Go 1.26 or newer is needed for that.
# With the programs of build_kubernetes.sh in TAMIS_KUBERNETES, the chart is also installed into a real API server.
set -euo pipefail
cd "$(dirname "$0")/../.."
TAMIS_HELM=$(tests/containers/install_helm.sh "$1")
export TAMIS_HELM
.venv/bin/pytest tests/helm
