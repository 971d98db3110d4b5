#!/usr/bin/env bash
# with_python.sh ARGS...: a Python that has pytest and numpy, or says that it is skipped (exit code 77).
if [[ -z ${LAZULI_TEST_PYTHON:-} ]]; then
  echo "skipped: LAZULI_TEST_PYTHON names no Python with pytest and numpy; ./lz test makes one"
  exit 77
fi
# What a program computes, code of LLVM computes here, although most programs of a test run only once.
export LAZULI_INTERPRET_OPS=${LAZULI_INTERPRET_OPS-0}
exec "$LAZULI_TEST_PYTHON" "$@"
