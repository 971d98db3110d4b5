#include <string>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

TEST(NpuRandomBitsTest, AreTheEvaluators) {
  Config small;
  small.spm.kb = 2;  // several parts
  for (const char* const algorithm : {"rng_philox", "rng_three_fry"}) {
    for (const char* const state : {"u64[2]", "u64[3]"}) {
      for (const char* const bits : {"u32[37]", "u32[6,5]", "u32[3,5,2]", "u64[7]", "u8[33]",
                                     "u16[3,3]", "u32[]", "u32[400]"}) {
        for (const Config& config : {Config(), small})
          ExpectCompiled(Str("ENTRY e { s = ", state, " parameter(0) ROOT r = (", state, ", ", bits,
                             ") rng-bit-generator(s), algorithm=", algorithm, " }"),
                         {.config = config});
      }
    }
  }
}

}  // namespace
}  // namespace lazuli::npu
