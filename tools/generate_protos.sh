#!/bin/sh
# Writes the Python of all protos into the folder named (default: protos/gen). Run from the project's top.
set -eu
out=${1:-protos/gen}
bin=${BIN:-.venv/bin}
mkdir -p "$out"
messages=$(cd protos && find sabot -name '*.proto' | sort)
services=$(cd protos && find sabot -name '*_service.proto' | sort)
PATH="$bin:$PATH" "$bin/python" -m grpc_tools.protoc -I protos -I protos/third_party \
  --python_out="$out" --mypy_out=quiet:"$out" $messages buf/validate/validate.proto
PATH="$bin:$PATH" "$bin/python" -m grpc_tools.protoc -I protos -I protos/third_party \
  --grpc_python_out="$out" --mypy_grpc_out=quiet:"$out" $services
