// NpuExecutable: runs a plan - programs of the device and of the host, one after the other.
//
// All arrays of a run lie in the DRAM of the card that it runs on, those that pass between device
// and host, too. A run obtains their memory first, so that one that does not get it has changed
// nothing. A program of the host reads its inputs where they lie, since the DRAM is simulated in
// the host's memory; what a real device would have to transfer is counted all the same.
#pragma once

#include <memory>
#include <vector>

#include "backend/client/client.h"
#include "backend/npu/plan.h"
#include "backend/npu/sim/card.h"
#include "backend/npu/sim/fabric.h"

namespace lazuli::npu {

class Views;

// What ops ran on the host, over all programs: for the summary at exit.
class HostOpCounts {
 public:
  void Add(const std::vector<HostOp>& ops);
  // The most frequent first.
  std::vector<HostOp> All() const;

 private:
  mutable ir::ForkMutex mutex_;
  std::vector<HostOp> ops_;
};

// What executables share with their client.
struct NpuDevices {
  std::vector<Device> devices;
  std::vector<std::shared_ptr<Card>> cards;  // of the devices
  std::unique_ptr<Fabric> fabric;            // the links between them
  HostOpCounts host_ops;
  std::unique_ptr<Views> views;  // null: nobody asked for any
  NpuDevices();
  ~NpuDevices();
};

// `device` is where outputs of a run without buffers lie.
ExecutablePtr MakeNpuExecutable(Plan plan, std::shared_ptr<NpuDevices> devices, Device device);

}  // namespace lazuli::npu
