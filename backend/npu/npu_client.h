// The platform "npu": devices npu:0, npu:1, ... of the simulated machine (docs/npu.md).
#pragma once

namespace lazuli::npu {

// Makes the platform known to the registry. Its configuration is what NPU_CONFIG and NPU_SET say
// when it is first asked for.
void RegisterNpu();

}  // namespace lazuli::npu
