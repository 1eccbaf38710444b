#!/usr/bin/env bash
# Fuzzes with libFuzzer: fuzz/run.sh TARGET [RUNS [SEED]]; MINUTES=10 ends it earlier.
#
#   fuzz/run.sh TARGET control   a planted fault that the target must find: fails when it does not
#   fuzz/run.sh TARGET FILE      one input again
#
# Needs a nightly compiler (`rustup toolchain install nightly`) and a C++ compiler for libFuzzer. Builds into target/fuzz,
# keeps the corpus in target/fuzz/corpus/TARGET, and begins with fuzz/seeds/TARGET and files of the repository. What it
# finds is in target/fuzz/found/TARGET. `cargo fuzz` works in fuzz/ too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
work="${CARGO_TARGET_DIR:-$root/target}/fuzz"
if [ $# -lt 1 ] || [ ! -f "$here/fuzz_targets/$1.rs" ]; then
  names=$(cd "$here/fuzz_targets" && echo *.rs)
  echo "usage: fuzz/run.sh TARGET [RUNS [SEED]] | TARGET control | TARGET FILE; targets: ${names//.rs/}" >&2
  exit 2
fi
target=$1 runs=${2:-1000000} seed=${3:-1}
host=$(rustc +nightly -vV | sed -n 's/^host: //p')

# What cargo-fuzz passes too, without a sanitizer: our own code has no `unsafe`, and the address sanitizer halves the speed.
passes="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
passes="$passes -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
passes="$passes -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing -Cdebug-assertions"
(cd "$here" && RUSTFLAGS="$passes" CARGO_TARGET_DIR="$work" \
  nice cargo +nightly build --locked --release --target "$host" --bins -j "${JOBS:-1}")

# The longest input, the words, and real files to begin with. Memory that an input needs shows in what the process needs:
# the targets without a server are held to half a gigabyte, the corpus included.
longest=4096 words=mcp memory=4096 real=()
case $target in
  strict | canonical)
    words=json memory=512
    real=("$root"/docs/*.json "$root"/crates/wf-procedure/tests/files/*/*.json)
    ;;
  jwt) words=jwt memory=512 ;;
  procedure)
    longest=8192 words=procedure memory=1024
    real=("$root"/crates/wf-procedure/procedures/* "$root"/crates/wf-procedure/tests/files/*/*.{yaml,json})
    ;;
  event)
    longest=16384 words=event memory=512
    real=("$root"/crates/wf-cli/tests/fixtures/*/evidence.json)
    ;;
esac
seeds="$work/seeds/$target"
rm -rf "$seeds"
mkdir -p "$work/corpus/$target" "$work/found/$target" "$seeds"
cp "$here/seeds/$target"/* "$seeds"/
for file in "${real[@]}"; do
  if [ "$(stat -c %s "$file")" -le "$longest" ]; then
    name=${file#"$root"/}
    cp "$file" "$seeds/${name//\//-}"
  fi
done

program="$work/$host/release/$target"
if [ -f "$runs" ]; then
  exec "$program" "$runs"
fi
options=("-dict=$here/dict/$words.dict" "-max_len=$longest" -timeout=30 "-rss_limit_mb=$memory" -print_final_stats=1)
if [ "$runs" = control ]; then
  # From the seeds alone, so that it finds the fault by itself.
  control=$(mktemp -d "$work/control.XXXXXX")
  trap 'rm -rf "$control"' EXIT
  started=$SECONDS
  if CHECKPOINT_FUZZ_PLANTED=1 nice "$program" "$control" "$seeds" -max_total_time=120 -seed="$seed" \
    "${options[@]}" -artifact_prefix="$control/" >"$work/control-$target.log" 2>&1; then
    echo "$target: the planted fault was NOT found in $((SECONDS - started)) s" >&2
    exit 1
  fi
  found=$(grep -am1 -A1 'panicked at' "$work/control-$target.log" | tail -1 | cut -c1-160)
  inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/control-$target.log")
  echo "$target: the planted fault was found after $inputs inputs and $((SECONDS - started)) s: $found"
  exit 0
fi
exec nice "$program" "$work/corpus/$target" "$seeds" -runs="$runs" -seed="$seed" \
  -max_total_time="$((${MINUTES:-0} * 60))" "${options[@]}" -artifact_prefix="$work/found/$target/"
