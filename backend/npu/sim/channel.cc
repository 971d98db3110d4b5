// The DRAM's channel: grants, round robin over the queues of all cores.

#include <algorithm>

#include "backend/npu/sim/engine.h"

namespace lazuli::npu {

// The one behind the last that was served, of those that have been issued. Null: there is none, and
// each will have an event.
DramRequest* Engine::NextRequest(SimulatedDevice& device) const {
  DramRequest* next = nullptr;
  int best = 0;
  const auto slots = static_cast<int>(config_.cores) * kQueues;
  for (DramRequest& request : device.requests) {
    if (request.issued > now_) continue;
    const int slot = request.core * kQueues + request.queue;
    const int distance = (slot - device.last_served - 1 + 2 * slots) % slots;
    if (next != nullptr && distance >= best) continue;
    next = &request;
    best = distance;
  }
  return next;
}

// One grant of a request, cut between bursts; in ticks, when its last byte has passed.
int64_t Engine::Serve(Dram& channel, DramRequest& request) const {
  const int64_t now = now_ * kTicksPerCycle;
  // The channel goes on in the cycle in which it became free.
  int64_t at = channel.free_at() > now - kTicksPerCycle ? channel.free_at() : now;
  int64_t left = config_.dma.grant;
  while (left > 0 && request.at < request.runs.size()) {
    const auto& [offset, bytes] = request.runs[request.at];
    int64_t piece = std::min(left, bytes - request.served);
    const int64_t over =
        static_cast<int64_t>((offset + static_cast<uint64_t>(request.served + piece)) %
                             static_cast<uint64_t>(config_.dram.burst));
    if (request.served + piece < bytes && over < piece) piece -= over;
    at = channel.Serve(at, offset + static_cast<uint64_t>(request.served), piece);
    request.served += piece;
    left -= CeilDiv(piece, config_.dram.burst) * config_.dram.burst;
    if (request.served == bytes) {
      ++request.at;
      request.served = 0;
    }
  }
  return at;
}

void Engine::FinishTransfer(SimulatedDevice& device, std::size_t index, int64_t end) {
  const DramRequest request = std::move(device.requests[index]);
  device.requests.erase(device.requests.begin() + static_cast<std::ptrdiff_t>(index));
  Core& core = *device.cores[static_cast<std::size_t>(request.core)];
  const int track = 1 + request.queue;
  end = TakeBanks(core, track, BankRank::kTransfer, request.start, end - request.start,
                  request.words);
  core.queues[request.queue].transferring = false;
  Complete(core,
           {core.device, core.index, track, request.pc, request.in, request.ready, request.start,
            end, 0, request.stall, request.bytes},
           request.latency);
  Push(end, core.device, core.index, track, Event::kUnit, static_cast<uint32_t>(request.queue));
}

bool Engine::Grant(SimulatedDevice& device) {
  auto wake = [&] {
    if (device.granting || device.requests.empty()) return;
    device.granting = true;
    Push(CeilDiv(device.channel->free_at(), kTicksPerCycle), device.index, 0, kGrantOrder,
         Event::kGrant, 0);
  };
  if (device.channel->free_at() > now_ * kTicksPerCycle) {
    wake();
    return true;
  }
  device.granting = false;
  DramRequest* const request = NextRequest(device);
  if (request == nullptr) return true;
  device.last_served = request->core * kQueues + request->queue;
  const int64_t end = Serve(*device.channel, *request);
  if (request->at == request->runs.size())
    FinishTransfer(device, static_cast<std::size_t>(request - device.requests.data()),
                   CeilDiv(end, kTicksPerCycle));
  wake();
  return true;
}

}  // namespace lazuli::npu
