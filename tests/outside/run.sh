#!/usr/bin/env bash
# Black-box tests of the real binary: tests/outside/run.sh path/to/wf-cli [suite…]
#
# Makes a Python environment and a node_modules folder under target/outside (kept, and made again only when the pins
# change), runs every suite, and ends with one line of counts. Exit code 0 if nothing failed.
# With WF_AWS_ENDPOINT the servers keep their state in tables on that emulator of DynamoDB; `cargo xtask aws` does that.
# Parameters: KILLS, CALLERS, SEED (kill_loop.py), SECONDS (bad_table.py, bad_machine.py); OUTSIDE_KEEP=1 keeps the servers' folders; LANES
# (suites at once, 2; a suite's lines are printed when it is over); PYTHON, NODE, NPM.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(cd "$here/../.." && pwd)
work="${CARGO_TARGET_DIR:-$repository/target}/outside"
python=${PYTHON:-python3} node=${NODE:-node} npm=${NPM:-npm} lanes=${LANES:-2}

if [ $# -lt 1 ] || [ ! -x "$1" ]; then
  echo "usage: tests/outside/run.sh path/to/wf-cli [suite…]   (build it first: cargo build -p wf-cli)" >&2
  exit 2
fi
OUTSIDE_BIN=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
export OUTSIDE_BIN OUTSIDE_REPOSITORY="$repository" PYTHONDONTWRITEBYTECODE=1
shift
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(kill_loop wire auth people oauth python_client reading ts_client stdio clients asking agent main_job idempotency bad_input bad_setup reload webhooks top console sigterm conformance idempotent_tool bad_table bad_machine orchestrated)

# True if FILE is not what the stamp says was installed from it.
changed() { ! cmp -s "$1" "$2"; }

mkdir -p "$work/node"
if changed "$here/requirements.txt" "$work/venv/installed.txt"; then
  rm -rf "$work/venv"
  "$python" -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --requirement "$here/requirements.txt"
  cp "$here/requirements.txt" "$work/venv/installed.txt"
fi
if changed "$here/package-lock.json" "$work/node/installed.json"; then
  cp "$here/package.json" "$here/package-lock.json" "$work/node/"
  (cd "$work/node" && "$npm" ci --silent --no-audit --no-fund)
  cp "$here/package-lock.json" "$work/node/installed.json"
fi
# MCP Inspector, which brings a browser application. Not `npm ci`: a package that some system needs may be missing elsewhere.
if changed "$here/inspector/package-lock.json" "$work/inspector/installed.json"; then
  mkdir -p "$work/inspector"
  cp "$here/inspector/package.json" "$here/inspector/package-lock.json" "$work/inspector/"
  (cd "$work/inspector" && "$npm" install --loglevel=error --no-audit --no-fund)
  cp "$here/inspector/package-lock.json" "$work/inspector/installed.json"
fi
# Node looks for packages beside the script.
cp "$here/"*.mjs "$work/node/"
export OUTSIDE_NODE_MODULES="$work/node/node_modules" NODE="$node"

logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
# Whoever interrupts this ends the suites too.
trap 'trap - INT TERM; kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
passed=0 failed=0 skipped=0 failures=()

run() {
  local suite=$1 code=0
  if [ ! -f "$here/$suite.py" ]; then
    command=("$work/venv/bin/python" "$here/harness.py" "$node" "$work/node/$suite.mjs")
  else
    command=("$work/venv/bin/python" "$here/$suite.py")
  fi
  "${command[@]}" </dev/null >"$logs/$suite.log" 2>&1 || code=$?
  echo "$code" >"$logs/$suite.ended.part"
  mv "$logs/$suite.ended.part" "$logs/$suite.ended"
}

# Prints and counts the suites that ended since it was called last.
report() {
  local ended suite log code p f s
  for ended in "$logs"/*.ended; do
    [ -e "$ended" ] || continue
    suite=$(basename "$ended" .ended) log="${ended%.ended}.log" code=$(cat "$ended")
    rm "$ended"
    cat "$log"
    p=$(grep -c '^PASS ' "$log" || true) f=$(grep -c '^FAIL ' "$log" || true) s=$(grep -c '^SKIP ' "$log" || true)
    # A suite that breaks outside its cases, or runs none, has failed too.
    if { [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; } || [ $((p + f + s)) -eq 0 ]; then
      echo "FAIL $suite: ended with exit code $code after $((p + s)) cases"
      f=$((f + 1)) failures+=("FAIL $suite: ended with exit code $code after $((p + s)) cases")
    fi
    while read -r line; do failures+=("$line"); done < <(grep '^FAIL ' "$log" || true)
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  done
}

# Side by side, for they wait more than they work.
for suite in "${suites[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do
    wait -n || true
    report
  done
  run "$suite" &
done
while [ -n "$(jobs -rp)" ]; do
  wait -n || true
  report
done
report

# Once more, where whoever looks at the end of a long log finds them.
[ "$failed" -eq 0 ] || printf '%s\n' "${failures[@]}"
if [ "$skipped" -gt 0 ]; then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
[ "$failed" -eq 0 ]
