# A little test harness: each test runs in a fresh folder $work with only the programs named by programs() on PATH.
# Sourced by the tests beside it, which end with `finish`.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
real_path=$PATH
real_id=$(command -v id) real_id_sum=$(sha256sum "$real_id")
tests=0 failures=0

# begin NAME: a new test.
begin() {
  name=$1 tests=$((tests + 1))
  work=$scratch/$tests
  mkdir -p "$work/bin" "$work/home" "$work/cwd"
  cd "$work/cwd" || exit
  programs bash cat cp dirname grep gzip mkdir mktemp mv rm sed sha256sum sleep tail tar timeout
}

# Puts the real programs of these names on the test's PATH.
programs() {
  local program
  for program; do
    ln -sf "$(PATH=$real_path command -v "$program")" "$work/bin/$program"
  done
}

# fake NAME: a program of that name, whose script is standard input. It is told where to count its calls. Takes the place of
# the link that programs() may have made: written through, it would replace the machine's own program.
fake() {
  rm -f "$work/bin/$1"
  { echo "#!$BASH"; echo "echo \"\$*\" >>'$work/$1.calls'"; cat; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}

# run COMMAND...: keeps $out, $err and $code.
run() {
  env -i PATH="$work/bin" HOME="$work/home" ${settings[@]+"${settings[@]}"} "$@" \
    >"$work/out" 2>"$work/err" </dev/null
  code=$? out=$(<"$work/out") err=$(<"$work/err")
}

fail() {
  failures=$((failures + 1))
  printf 'FAILED %s: %s\n  exit code %s\n  stdout: %s\n  stderr: %s\n' "$name" "$1" "$code" "$out" "$err"
}

expect_code() { [[ $code == "$1" ]] || fail "exit code should be $1"; }
expect_out() { [[ $out == "$1" ]] || fail "stdout should be: $1"; }
expect_out_has() { [[ $out == *"$1"* ]] || fail "stdout should contain: $1"; }
expect_err_has() { [[ $err == *"$1"* ]] || fail "stderr should contain: $1"; }
expect_calls() { [[ $(cat "$work/$1.calls" 2>/dev/null) == *"$2"* ]] || fail "$1 should have been called with: $2"; }
expect_no_calls() { [[ ! -e $work/$1.calls ]] || fail "$1 should not have been called"; }

# One sentence and no more: what a person sees when something is wrong.
expect_one_sentence() {
  expect_code 1
  expect_out ""
  [[ $(grep -c . <<<"$err") == 1 ]] || fail "stderr should be one line"
  expect_err_has "$1"
}

finish() {
  cd / || exit
  [[ $(sha256sum "$real_id") == "$real_id_sum" ]] || { echo "FAILED: a fake was written over $real_id"; failures=1; }
  echo "$tests tests, $failures failures"
  exit $((failures > 0))
}
