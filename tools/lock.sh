#!/bin/sh
# Writes both locks from pyproject.toml: what runs, and what developing needs on top of it. They hold
# hashes and no index addresses, so that any mirror serves. Run from the project's top.
# Arguments are passed on to uv: `--upgrade` takes newer releases, without it what is locked stays.
set -eu
compile() {
  "${BIN:-.venv/bin}/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --custom-compile-command 'make lock' pyproject.toml --extra embedded --extra console "$@"
}
compile -o requirements.txt "$@"
compile --group dev -c requirements.txt -o requirements-dev.txt "$@"
