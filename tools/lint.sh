#!/usr/bin/env bash
# Formatting, clang-tidy and the rules that greps can check, over all files of ours, those named, or those --changed, and the
# width of the Python package.
# clang-tidy needs the flags of every file: cmake --preset lint (./lz lint does that).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

jobs=${LAZULI_JOBS:-$(nproc)}
bad=0

if [[ ${1:-} == --changed ]]; then  # since the last commit
  mapfile -t files < <({ git diff --name-only --diff-filter=d HEAD; git ls-files -o --exclude-standard; } | grep -E '\.(h|cc)$')
elif (($#)); then
  files=("$@")
else
  mapfile -t files < <(git ls-files -co --exclude-standard -- '*.h' '*.cc')
fi
((${#files[@]})) || { echo "nothing to check" && exit; }

# check TITLE COMMAND...: the command prints what is wrong; nothing printed is right.
check() {
  local title=$1 out
  shift
  out=$("$@" 2>&1)
  if [[ -z $out ]]; then
    echo "ok      $title"
  else
    printf 'FAILED  %s\n%s\n' "$title" "$out"
    bad=1
  fi
}

# lines PATTERN FILE...: lines of these files that match it outside comments and strings, unless they say NOLINT.
lines() {
  local pattern=$1
  shift
  (($#)) || return 0
  awk -v pattern="$pattern" '
    { code = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", code); sub(/\/\/.*/, "", code) }
    code ~ pattern && $0 !~ /NOLINT/ { print FILENAME ":" FNR ": " $0 }' "$@"
}
below() { printf '%s\n' "${files[@]}" | grep -E "$1"; }  # those files that match a pattern

# each N COMMAND...: the command over the files on standard input, N at a time, in parallel.
each() { tr '\n' '\0' | xargs -0 -r -n "$1" -P "$jobs" "${@:2}"; }

format() {
  below . | each 20 clang-format-19 --dry-run --Werror 2>&1 | sed -nE 's/^([^ :]+):[0-9]+:[0-9]+: error: .*/\1/p' | sort -u |
    sed 's/$/: not formatted (clang-format-19 -i)/'
}

# Headers are seen through the sources that include them. Ninja remembers what was right; on a terminal it says where it is.
tidy() {
  local targets
  [[ -f build/lint/compile_commands.json ]] || { echo "no build/lint/compile_commands.json: run cmake --preset lint"; return; }
  python3 tools/tidy_ninja.py build/lint
  mapfile -t targets < <(below '\.cc$' | sed 's|.*|tidy/&.ok|' | grep -Fx -f <(sed -nE 's|^build (\S+): .*|\1|p' build/lint/tidy.ninja))
  ((${#targets[@]})) || return 0
  ninja -C build/lint -f tidy.ninja -j "$jobs" -k 0 "${targets[@]}" 2>&1 | awk -v terminal="$([[ -t 2 ]] && echo 1)" '
    /^\[[0-9]+\/[0-9]+\]/ { if (terminal) printf "\r%s\033[K", $0 > "/dev/stderr"; next }
    /^ninja: (Entering|no work|build stopped)|^[0-9]+ warnings? (and [0-9]+ errors? )?generated\.$|^FAILED: |^clang-tidy-19 / { next }
    NF { print }
    END { if (terminal) printf "\r\033[K" > "/dev/stderr" }'
}

python_columns() {
  [[ ! -d python/lazuli ]] || grep -rnE --include='*.py' '.{101}' python/lazuli | sed -E 's/^([^:]+:[0-9]+):.*/\1: more than 100 columns/'
}

layering() { python3 tools/check_layering.py | grep -v '^layering: ok$'; }

# Errors below lazy/tensor and in lazy/execution are absl::Status: LLVM frames never see an exception.
throws() { lines '(^|[^a-zA-Z_])throw([^a-zA-Z_]|$)' $(below '^(ir|lowering|backend|lazy/execution)/'); }

# Memory is owned by containers, unique_ptr and IntrusivePtr (which take what a private constructor made, and delete).
# `static ... = new` is a table that outlives every user; `new (place)` owns nothing.
raw_new() {
  lines '(^|[^a-zA-Z_:])(new|delete) +[a-zA-Z_:]' $(below '^(ir|lowering|backend|lazy|cpp_api)/' | grep -v intrusive_ptr) |
    grep -vE ':[[:space:]]*static |(unique_ptr|IntrusivePtr)<.*\(new '
}

check "clang-format" format
check "Python in 100 columns" python_columns
check "layering" layering
check "every source in a CMakeLists.txt, lists sorted" python3 tools/check_cmake_lists.py
check "no throw below lazy/tensor" throws
check "no raw new or delete" raw_new
check "clang-tidy" tidy
exit $bad
