#!/usr/bin/env bash
# Prints the folder that holds CIFAR-10's six binary files, after getting them if need be.
#
# They are taken from $LAZULI_CIFAR10_DIR or ./data/cifar10 if they are there; else from the user's cache, which is filled from
# the data set's own site. The archive is checked against tools/cifar10.sha256 before anything of it gets its name, so there is
# never a half-written file. Whatever goes wrong is one sentence on stderr and exit code 1.
set -euo pipefail

sums=${LAZULI_CIFAR10_SUMS:-$(dirname "${BASH_SOURCE[0]}")/cifar10.sha256}  # tests have smaller files
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lazuli/data/cifar10
url=https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz
files=(data_batch_{1..5}.bin test_batch.bin)

die() {
  echo "fetch_cifar10: $*" >&2
  exit 1
}

for dir in "${LAZULI_CIFAR10_DIR:-}" data/cifar10 "$cache"; do
  [[ -n $dir && -e $dir/${files[0]} ]] || continue
  for file in "${files[@]}"; do
    [[ -f $dir/$file ]] || die "in $dir $file is missing; put the six files there, or remove them to have them downloaded"
  done
  cd "$dir" && pwd
  exit
done

tmp=$(mkdir -p "$cache" 2>/dev/null && mktemp -d "$cache/.part.XXXXXX" 2>/dev/null) ||
  die "cannot write to $cache; let XDG_CACHE_HOME name a folder that can be written"
trap 'rm -rf "$tmp"' EXIT

command -v curl >/dev/null || die "curl is not installed; put the six files into data/cifar10"
archive=$tmp/$(sed 's/.* //' "$sums")
curl -fsSL --connect-timeout 10 --max-time 1200 -o "$archive" "$url" 2>"$tmp/log" ||
  die "no CIFAR-10 from $url: $(tail -n 1 "$tmp/log"); put its six files into data/cifar10"
[[ $(sha256sum <"$archive") == "$(cut -d' ' -f1 "$sums") "* ]] || die "$url gave a wrong or truncated file; try again"
tar --no-same-owner -xzf "$archive" -C "$tmp" --strip-components=1 2>"$tmp/log" ||
  die "the archive does not fit on the disk"
for file in "${files[@]}"; do
  mv -f "$tmp/$file" "$cache/$file" || die "cannot write to $cache; is the disk full?"
done
echo "$cache"
