#!/usr/bin/env bash
# Builds kube-apiserver, kube-controller-manager and etcd with Go 1.26 into the directory $1. It takes about ten minutes on
# two cores. tests/helm uses the directory if TAMIS_KUBERNETES names it.
set -euo pipefail
mkdir -p "$1"
directory=$(cd "$1" && pwd)
minor=37.2
etcd=v3.6.12

if [ -x "$directory/kube-apiserver" ] && [ -x "$directory/kube-controller-manager" ] && [ -x "$directory/etcd" ]; then
  exit
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# The modules of Kubernetes replace each other by folders of its repository. Here they are the published ones.
module=k8s.io/kubernetes@v1.$minor
files=$(go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
sed -e 's#^module .*#module example.org/kubernetes#' -e "s#=> ./staging/src/\(k8s.io/[a-z0-9-]*\)#=> \1 v0.$minor#" "$files/go.mod" > go.mod
echo "require k8s.io/kubernetes v1.$minor" >> go.mod
cp "$files/go.sum" go.sum
version=k8s.io/component-base/version
for program in kube-apiserver kube-controller-manager; do
  go build -mod=mod -o "$directory/$program" \
    -ldflags "-s -w -X $version.gitVersion=v1.$minor -X $version.gitMajor=1 -X $version.gitMinor=${minor%.*}" \
    "k8s.io/kubernetes/cmd/$program"
done

# Spark watches its pods in a way for which Debian's etcd 3.4 is too old.
mkdir etcd
cd etcd
printf 'module example.org/etcd\ngo 1.26\n' > go.mod
go get "go.etcd.io/etcd/server/v3@$etcd"
go build -mod=mod -ldflags "-s -w" -o "$directory/etcd" go.etcd.io/etcd/server/v3
