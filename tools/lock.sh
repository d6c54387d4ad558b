#!/bin/sh
# Writes the locks from pyproject.toml: what runs, what developing needs on top of it, and apart from
# both what judges the manifests. They hold hashes and no index addresses, so that any mirror serves.
# Run from the project's top.
# Arguments are passed on to uv: `--upgrade` takes newer releases, without it what is locked stays.
set -eu
compile() {
  "${BIN:-.venv/bin}/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --custom-compile-command 'make lock' "$@"
}
ours='pyproject.toml --extra embedded --extra console'
# shellcheck disable=SC2086 -- words
compile $ours -o requirements.txt "$@"
# shellcheck disable=SC2086 -- words
compile $ours --group dev -c requirements.txt -o requirements-dev.txt "$@"
compile --group checkov -o requirements-checkov.txt "$@"
