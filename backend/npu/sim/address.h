// The memory map: 40 bits of address.
#pragma once

#include <cstdint>

namespace lazuli::npu {

// Own SPM is below; then own accumulators, row by row.
inline constexpr uint64_t kAccBase = 0x01'0000'0000;
// Instructions and descriptors: no unit reads them as data.
inline constexpr uint64_t kInstructionBase = 0x02'0000'0000;
// State registers, 8 bytes each, in the order of CsrNames(); then the semaphores.
inline constexpr uint64_t kCsrBase = 0x03'0000'0000;
inline constexpr uint64_t kCsrSemaphores = 0x1000;
// SPM of core c at kCoresBase + (c << kCoreShift).
inline constexpr uint64_t kCoresBase = 0x04'0000'0000;
inline constexpr int kCoreShift = 28;
inline constexpr uint64_t kDramBase = 0x10'0000'0000;
// The window of device d at kPeerBase + (d << 32): its DRAM, then SPM of its core c at kPeerSpm +
// (c << kPeerSpmShift).
inline constexpr uint64_t kPeerBase = 0x40'0000'0000;
inline constexpr uint64_t kPeerSpm = 0xf000'0000;
inline constexpr int kPeerSpmShift = 26;
inline constexpr uint64_t kHostBase = 0x80'0000'0000;
inline constexpr uint64_t kHostBytes = uint64_t{1} << 28;  // of the host window

}  // namespace lazuli::npu
