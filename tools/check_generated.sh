#!/bin/sh
# Fails where protos/gen is not exactly what the protos generate. Run from the project's top.
set -eu
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
sh tools/generate_protos.sh "$fresh"
if ! diff -r --exclude=__pycache__ protos/gen "$fresh"; then
  echo "protos/gen is not what the protos generate: run 'make protos' and commit the result" >&2
  exit 1
fi
