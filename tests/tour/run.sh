#!/usr/bin/env bash
# Runs the README's tour against a real binary, and checks what the documents say: tests/tour/run.sh path/to/wf-cli
#
# Python's standard library is all it needs. Ends with one line of counts; exit code 0 if nothing failed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -ne 1 ] || [ ! -x "$1" ]; then
  echo "usage: tests/tour/run.sh path/to/wf-cli   (build it first: cargo build -p wf-cli)" >&2
  exit 2
fi
exec env PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-python3}" "$here/run.py" "$1"
