"""Where programs run: the default device's platform, and what there is.

    lz.runtime.set_device_type("npu")  # as PJRT_DEVICE=npu in the environment
    lz.runtime.device_type()           # 'npu'
"""

from lazuli._C import device_type, devices, memory_stats, set_device_type

__all__ = ["device_type", "devices", "memory_stats", "set_device_type"]
