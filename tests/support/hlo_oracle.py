"""Runs HLO text on jaxlib's CPU client, in a child process because XLA aborts on some inputs.

    oracle = Oracle(); outputs = oracle.run(text, inputs)

The text goes through StableHLO, so it is un-optimised HLO (no fusion, no bitcast) with row-major entry layouts.
Works with jaxlib 0.10.
"""

import multiprocessing
import os

TIMEOUT = 300  # seconds that XLA has for one module


class Oracle:
    """A child process that runs one module after another; started again when it dies."""

    def __init__(self):
        self._context = multiprocessing.get_context("spawn")
        self._child = None

    def run(self, text, inputs):
        """Outputs as numpy arrays; RuntimeError with XLA's message."""
        if self._child is None:
            self._pipe, end = self._context.Pipe()
            self._child = self._context.Process(target=_serve, args=(end,), daemon=True)
            self._child.start()
            end.close()
        try:
            self._pipe.send((text, inputs))
            if not self._pipe.poll(TIMEOUT):
                self.close()
                raise RuntimeError(f"XLA gave no answer in {TIMEOUT} s")
            ok, value = self._pipe.recv()
        except (EOFError, ConnectionError):
            self.close()  # it may take a while to die, and would not answer the next one either
            raise RuntimeError("XLA aborted") from None
        if not ok:
            raise RuntimeError(value)
        return value

    def close(self):
        if self._child is not None:
            self._child.kill()
            self._child = None


def _serve(pipe):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_ENABLE_X64"] = "1"
    import jax
    jax.numpy.linalg.qr(jax.numpy.eye(2))  # JAX makes LAPACK known to XLA when it first needs it
    while True:
        try:
            text, inputs = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, _run(text, inputs)))
        except Exception as error:  # whatever XLA raises is the answer
            pipe.send((False, str(error).strip().split("\n")[0][:300]))


def _run(text, inputs):
    import jax
    import numpy
    from jaxlib import _hlo, _jax, xla_client

    device = jax.local_devices(backend="cpu")[0]
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    executable = device.client.compile_and_load(
        _jax.mlir.hlo_to_stablehlo(proto), xla_client.DeviceList((device,)), options)
    results = executable.execute_sharded([jax.device_put(x, device) for x in inputs])
    return [numpy.asarray(arrays[0]) for arrays in results.disassemble_into_single_device_arrays()]
