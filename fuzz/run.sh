#!/usr/bin/env bash
# Fuzzes the server with libFuzzer: fuzz/run.sh envelope|request_state [RUNS [SEED]]
#
# Needs a nightly compiler (`rustup toolchain install nightly`) and a C++ compiler for libFuzzer. Builds into target/fuzz,
# keeps the corpus in target/fuzz/corpus/TARGET, and begins with fuzz/seeds/TARGET. What it finds is in
# target/fuzz/found/TARGET; give such a file as RUNS to see it again. `cargo fuzz` works in fuzz/ too.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work="${CARGO_TARGET_DIR:-$here/../target}/fuzz"
if [ $# -lt 1 ] || [ ! -f "$here/fuzz_targets/$1.rs" ]; then
  echo "usage: fuzz/run.sh envelope|request_state [RUNS [SEED]]" >&2
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

mkdir -p "$work/corpus/$target" "$work/found/$target"
program="$work/$host/release/$target"
if [ -f "$runs" ]; then
  exec "$program" "$runs"
fi
exec nice "$program" "$work/corpus/$target" "$here/seeds/$target" -runs="$runs" -seed="$seed" \
  -dict="$here/mcp.dict" -max_len=4096 -timeout=30 -rss_limit_mb=4096 -print_final_stats=1 \
  -artifact_prefix="$work/found/$target/"
