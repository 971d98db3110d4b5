"""Programs that JAX makes for several devices give on lazuli's devices what they give on jaxlib's.

usage: jax_devices_test.py PYTHON_PATH

Each program is taken as XLA prints it after partitioning and optimisation. It is evaluated by definition, and run on the CPU and on the
simulated NPU.
"""
import os
import sys

COUNT = 4
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={COUNT}"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

jax.devices()
os.environ["XLA_FLAGS"] = ""  # what follows is not for lazuli
os.environ.update(CPU_NUM_DEVICES=str(COUNT), NPU_SET=f"devices={COUNT}", NPU_SUMMARY="0")
sys.path.insert(0, sys.argv[1])
import lazuli as lz  # noqa: E402
from lazuli.debug import HloModule  # noqa: E402

lax = jax.lax
try:
    shard_map = jax.shard_map
except AttributeError:
    from jax.experimental.shard_map import shard_map


def mesh_of(count):
    if count == 4:
        return Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b"))
    return Mesh(np.array(jax.devices()[:count]), ("a",))


def values(*dims, dtype=np.float32):
    return np.random.default_rng(len(dims)).normal(size=dims).astype(dtype)


def over_a(function):
    return lambda count: shard_map(function, mesh=mesh_of(count), in_specs=P("a"), out_specs=P("a"))


# name: (function of the number of devices, sharding of the argument, argument)
PROGRAMS = {
    "psum": (over_a(lambda x: x * lax.psum(x, "a")), P("a"), values(8, 6)),
    "pmax": (over_a(lambda x: x - lax.pmax(x, "a")), P("a"), values(8, 6)),
    "psum_integers": (over_a(lambda x: lax.psum(x, "a") + x), P("a"), np.arange(16, dtype=np.int32).reshape(8, 2)),
    "all_gather": (over_a(lambda x: lax.all_gather(x, "a", tiled=True)[:4] * x[0, 0]), P("a"), values(8, 6)),
    "psum_scatter": (over_a(lambda x: lax.psum_scatter(x, "a", scatter_dimension=1, tiled=True)), P("a"), values(8, 8)),
    "all_to_all": (over_a(lambda x: lax.all_to_all(x, "a", 1, 0, tiled=True)), P("a"), values(8, 8)),
    "ppermute": (over_a(lambda x: lax.ppermute(x, "a", [(0, 1), (1, 0)])), P("a"), values(8, 3)),
    "axis_index": (over_a(lambda x: x * lax.axis_index("a")), P("a"), values(4, 3)),
    "loop": (over_a(lambda x: lax.fori_loop(0, 3, lambda i, y: y + lax.pmean(jnp.sin(y), "a") * i, x)), P("a"), values(4, 5)),
    "softmax": (over_a(lambda x: jnp.exp(x - lax.pmax(x.max(), "a")) / lax.psum(jnp.exp(x - lax.pmax(x.max(), "a")).sum(), "a")), P("a"),
                values(4, 5)),
    # XLA's own partitioner decides about the collectives.
    "partitioned_mlp": (lambda count: lambda x: jnp.tanh(x @ jnp.ones((6, 8)) * 0.1) @ jnp.ones((8, 6)), P("a"), values(8, 6)),
    "partitioned_sum": (lambda count: lambda x: x / x.sum(0), P("a"), values(8, 6)),
    "partitioned_columns": (lambda count: lambda x: (x @ x.T).sum(1), P(None, "a"), values(6, 8)),
}


def on_jax(name, count):
    """XLA's text of the partitioned program, and each device's arguments and results."""
    make, spec, argument = PROGRAMS[name]
    devices = mesh_of(count).devices.flatten()
    given = jax.device_put(argument, NamedSharding(mesh_of(count), spec))
    compiled = jax.jit(make(count)).lower(given).compile()
    result = compiled(given)

    def shards(array):
        by_device = {shard.device: np.asarray(shard.data) for shard in array.addressable_shards}
        return [by_device[device] for device in devices]

    return compiled.as_text(), shards(given), shards(result)


def check(name, where, found, expected):
    assert len(found) == len(expected), (name, where)
    for device, (mine, theirs) in enumerate(zip(found, expected)):
        np.testing.assert_allclose(mine[0].numpy(), theirs, rtol=2e-5, atol=1e-5, err_msg=f"{name} {where} device {device}")


def main():
    checks = 0
    for name in PROGRAMS:
        for count in (2, 4):
            text, arguments, expected = on_jax(name, count)
            module = HloModule.parse(str(HloModule.parse(text)))  # what lazuli prints is the same program
            check(name, "evaluated", module.evaluate_on_devices([[lz.tensor(x, device="cpu")] for x in arguments]), expected)
            for platform in ("cpu", "npu"):
                devices = [f"{platform}:{d}" for d in range(count)]
                given = [[lz.tensor(x, device=device)] for x, device in zip(arguments, devices)]
                check(name, platform, module.run_on_devices(given, devices), expected)
            checks += 3
    print(f"{len(PROGRAMS)} programs of JAX on 2 and 4 devices: {checks} comparisons")


main()
