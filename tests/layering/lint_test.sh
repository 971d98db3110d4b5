#!/usr/bin/env bash
# The rules of tools/lint.sh that are greps: what they must catch and what they must leave alone.
source "$(dirname "${BASH_SOURCE[0]}")/../lz/harness.sh"

# A tree with one source file, whose path is $1 and text standard input.
lint() {
  begin "$1"
  programs awk cut git sort tr xargs
  mkdir -p tools "$(dirname "$1")"
  cp "$root/tools/lint.sh" tools/
  cat >"$1"
  fake python3 <<<'exit 0'
  fake clang-format-19 <<<'exit 0'
  settings=(LAZULI_JOBS=1)
  run tools/lint.sh "$1"
}
expect_ok() { expect_out_has "ok      $1"; }
expect_bad() {
  expect_code 1
  expect_out_has "FAILED  $1"
}

lint ir/hlo/a.cc <<<'  throw 1;'
expect_bad "no throw"
expect_out_has "ir/hlo/a.cc:1:   throw 1;"
lint lazy/execution/a.cc <<<'if (x) throw Error();'
expect_bad "no throw"
lint lazy/ops/a.cc <<<'  throw 1;'
expect_ok "no throw"
lint ir/hlo/a.cc <<<'Rethrow(); // never throw
Log("do not throw");'
expect_ok "no throw"

lint ir/hlo/a.cc <<<'auto* p = new Node(3);'
expect_bad "no raw new"
lint lazy/ops/a.cc <<<'  delete node;'
expect_bad "no raw new"
lint ir/support/intrusive_ptr.h <<<'  delete node;'
expect_ok "no raw new"
lint ir/hlo/a.cc <<<'static auto* table = new Table;
A(const A&) = delete;
int new_size = renew(x);  // a new one
delete node;  // NOLINT: counted by hand'
expect_ok "no raw new"

long=$(printf 'x%.0s' {1..101})
lint python/lazuli/a.py <<<"$long"
expect_bad "Python in 100 columns"
expect_out_has "python/lazuli/a.py:1: more than 100 columns"
lint python/lazuli/a.py <<<"${long:1}"
expect_ok "Python in 100 columns"
lint ir/hlo/a.cc <<<''
expect_ok "Python in 100 columns"

finish
