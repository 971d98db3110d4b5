#!/usr/bin/env bash
# wheel_test.sh SOURCE WORK NAME=VALUE...: `pip install SOURCE` with these CMake variables in a clean virtual environment,
# then a program that uses it. WORK is the folder of the build, so that a second run compiles only what changed; WORK/test
# holds the environment. Exit code 77 if pip cannot reach its packages.
set -euo pipefail
source=$1 work=$2
shift 2
[[ -n ${LAZULI_TEST_PYTHON:-} ]] || { echo "skipped: LAZULI_TEST_PYTHON names no Python; ./lz test makes one"; exit 77; }

mkdir -p "$work"
test=$work/test
rm -rf "$test"
"$LAZULI_TEST_PYTHON" -m venv "$test/venv"
pip=("$test/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" download -q --no-deps -d "$test/packages" scikit-build-core pybind11 numpy ||
  { echo "skipped: pip cannot download the packages that a wheel is built with"; exit 77; }

"${pip[@]}" install "$source" --config-settings=build-dir="$work" "${@/#/--config-settings=cmake.define.}"

cd "$test"  # not where the sources are
unset PYTHONPATH
"$test/venv/bin/python" -c '
import pathlib
import lazuli as lz

net = lz.nn.Linear(3, 1)
net(lz.ones(2, 3)).sum().backward()
assert net.weight.grad.tolist() == [[2, 2, 2]]
folder = pathlib.Path(lz.__file__).parent
assert "site-packages" in str(folder), folder
assert (folder / "py.typed").is_file() and "def relu(x: Tensor" in (folder / "_C/__init__.pyi").read_text()
print("installed and used:", folder)
'
