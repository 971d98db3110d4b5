#!/usr/bin/env bash
# tools/fetch_cifar10.sh: every way in, and every way to fail. Needs no network: curl is a fake, the archive small.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

names=(data_batch_{1..5}.bin test_batch.bin)
good=$scratch/good
mkdir -p "$good/cifar-10-batches-bin"
for name in "${names[@]}"; do echo "$name" >"$good/cifar-10-batches-bin/$name"; done
tar -czf "$good/cifar-10-binary.tar.gz" -C "$good" cifar-10-batches-bin
(cd "$good" && sha256sum cifar-10-binary.tar.gz) >"$good/sums"

start() {
  begin "$1"
  settings=("LAZULI_CIFAR10_SUMS=$good/sums")
  cache=$work/home/.cache/lazuli/data/cifar10
}
fetch() { run bash "$root/tools/fetch_cifar10.sh"; }
curl_gives() { fake curl <<<"while ((\$#)); do [[ \$1 != -o ]] || cp '$1' \"\$2\"; shift; done"; }
expect_nothing_in_cache() { [[ -z $(ls -A "$cache" 2>/dev/null) ]] || fail "left behind: $(ls -A "$cache")"; }

start "LAZULI_CIFAR10_DIR with the files is used as it is"
settings+=("LAZULI_CIFAR10_DIR=$good/cifar-10-batches-bin")
fetch
expect_code 0
expect_out "$good/cifar-10-batches-bin"

start "a folder that lacks a file"
mkdir -p data && cp -r "$good/cifar-10-batches-bin" data/cifar10 && rm data/cifar10/data_batch_3.bin
fetch
expect_one_sentence "data_batch_3.bin is missing"

start "the archive is fetched once"
programs cut
curl_gives "$good/cifar-10-binary.tar.gz"
fetch
expect_code 0
expect_out "$cache"
for name in "${names[@]}"; do cmp -s "$cache/$name" "$good/cifar-10-batches-bin/$name" || fail "wrong $name"; done
fake curl <<<'exit 1'
fetch
expect_code 0
expect_out "$cache"

start "no network"
programs cut
fake curl <<<'echo "curl: (6) Could not resolve host" >&2; exit 6'
fetch
expect_one_sentence "Could not resolve host"
expect_nothing_in_cache

start "a wrong archive"
programs cut
curl_gives "$good/sums"
fetch
expect_one_sentence "wrong or truncated"
expect_nothing_in_cache

finish
