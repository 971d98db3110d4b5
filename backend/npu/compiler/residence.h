// Keeps small temporaries in the scratchpad: what one kernel stores and another one loads need not go
// through DRAM, whose latency is most of what a small array costs.
//
// Stores to and loads from such an array become copies inside the scratchpad, and the array a buffer,
// which lives from the first of them to the last. Only arrays whose accesses all lie between two
// branches: what a loop's next round finds is in DRAM. At any time such arrays take at most an eighth
// of the scratchpad. Where a kernel then does not fit beside them, those that are read again the latest
// are spilled: they go to DRAM after their last use before, and later loads find them there.
#pragma once

#include <cstddef>
#include <vector>

#include "backend/npu/compiler/allocate.h"
#include "backend/npu/compiler/tile_ir.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

class Residence {
 public:
  Residence(const Config& config, const TileProgram& program);
  // Whether there is anything to keep.
  bool any() const;
  // The program with what is kept in the scratchpad.
  TileProgram Apply();
  // Spills what makes room for what did not fit in the program that Apply() gave last. False: nothing does.
  bool Spill(const Shortage& shortage);
  int spilled() const { return spilled_; }

 private:
  struct ResidentArray {
    int array = -1;
    int64_t bytes = 0;
    std::vector<int> uses;  // operations that store or load it, in order
    int stored_by = -1;     // the one with which all of it has been stored
    int until = -1;         // its uses from this operation on are of DRAM; -1: none
    int buffer = -1;        // in the program of the last Apply()
  };
  void SpillBehind(const ResidentArray& kept, std::size_t at, TileProgram& program);

  const Config& config_;
  const TileProgram& program_;
  std::vector<ResidentArray> kept_;
  std::vector<int> origin_;  // of each operation of the last Apply(), in the program
  int spilled_ = 0;
};

}  // namespace lazuli::npu
