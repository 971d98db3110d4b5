#!/usr/bin/env bash
# wheel_test.sh SOURCE WORK WERROR: `pip install SOURCE` in a clean virtual environment, then a program that uses it.
# Exit code 77 if pip cannot reach its packages.
set -euo pipefail
source=$1 work=$2 werror=$3
[[ -n ${LAZULI_TEST_PYTHON:-} ]] || { echo "skipped: LAZULI_TEST_PYTHON names no Python; ./lz test makes one"; exit 77; }

mkdir -p "$work"
rm -rf "$work/venv" "$work/packages"
"$LAZULI_TEST_PYTHON" -m venv "$work/venv"
pip=("$work/venv/bin/python" -m pip --disable-pip-version-check)
"${pip[@]}" download -q --no-deps -d "$work/packages" scikit-build-core pybind11 numpy ||
  { echo "skipped: pip cannot download the packages that a wheel is built with"; exit 77; }

"${pip[@]}" install "$source" --config-settings=build-dir="$work/build" \
  --config-settings=cmake.define.LAZULI_WERROR="$werror"

cd "$work"  # not where the sources are
unset PYTHONPATH
"$work/venv/bin/python" -c '
import pathlib
import lazuli as lz

net = lz.nn.Linear(3, 1)
net(lz.ones(2, 3)).sum().backward()
assert net.weight.grad.tolist() == [[2, 2, 2]]
folder = pathlib.Path(lz.__file__).parent
assert "site-packages" in str(folder), folder
assert (folder / "py.typed").is_file() and "def relu(x: Tensor) -> Tensor" in (folder / "_C/__init__.pyi").read_text()
print("installed and used:", folder)
'
