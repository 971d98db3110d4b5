// Makes one instruction of what begins and ends as two: backends that run one instruction at a time
// gain nothing by the halves, and know the whole.
//
//   s = all-reduce-start(x), ...   d = all-reduce-done(s)   =>  d = all-reduce(x), ...
//   s = (f32[4], f32[4], u32[]) copy-start(x)  d = copy-done(s)  =>  d = copy(x)
//   s = async-start(x), calls=f   d = async-done(s)         =>  what f does
//   send(x, token), recv(token') of one channel with their -done, and the frontend attribute
//   _xla_send_recv_source_target_pairs                      =>  collective-permute(x)
//   one of them alone: the other end is another program's   =>  collective-permute(x), or of zeros
//
// A permutation is what every device does with a channel: it sends if it is a source of one of the pairs, and receives if it is a
// target; who does not gets zeros. Transfers to and from the host stay, and so do halves between which something has to happen.
#pragma once

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

class JoinAsync final : public Pass {
 public:
  std::string_view name() const override { return "join_async"; }
  absl::StatusOr<bool> Run(hlo::Module& module) override;
  bool is_needed() const override { return true; }
  bool wants_static_sizes() const override { return false; }
};

}  // namespace lazuli::lowering
