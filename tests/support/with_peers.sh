#!/usr/bin/env bash
# with_peers.sh SCRIPT.py ARGS...: runs it with a Python that has torch and jax, or says that it is skipped (exit code 77).
if [[ -z ${LAZULI_PEERS_PYTHON:-} ]]; then
  echo "skipped: LAZULI_PEERS_PYTHON names no Python with torch and jax; ./lz test --peers makes one"
  exit 77
fi
exec "$LAZULI_PEERS_PYTHON" "$@"
