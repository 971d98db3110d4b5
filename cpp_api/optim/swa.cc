#include "lazuli/swa.h"

#include <string>
#include <vector>

#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"

namespace lazuli::optim {
namespace {

std::vector<Tensor> Owned(const nn::Module& module, bool buffers) {
  std::vector<Tensor> all = module.parameters();
  const std::vector<Tensor> more = buffers ? module.buffers() : std::vector<Tensor>();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void CheckSame(const std::vector<Tensor>& x, const std::vector<Tensor>& y, SourceLocation loc) {
  bool same = x.size() == y.size();
  for (std::size_t i = 0; same && i < x.size(); ++i) same = x[i].sizes() == y[i].sizes();
  if (!same) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "AveragedModel: the model has other parameters than the averages", loc);
  }
}

}  // namespace

void update_averages(nn::Module& averages, const nn::Module& model, std::int64_t count,
                     const AveragedModelOptions& options, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  if (options.decay && !(*options.decay >= 0 && *options.decay <= 1)) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "AveragedModel: decay is " +
                               lazuli::internal::NumberText(*options.decay) +
                               ", it must be from 0 to 1",
                           loc);
  }
  const std::vector<Tensor> into = Owned(averages, options.use_buffers);
  const std::vector<Tensor> from = Owned(model, options.use_buffers);
  const std::vector<Tensor> kept = averages.buffers(), newest = model.buffers();
  CheckSame(into, from, loc);
  CheckSame(kept, newest, loc);
  for (std::size_t i = 0; i < into.size(); ++i) {
    Tensor average = into[i];
    const Tensor current = from[i].to(average.device());
    if (count == 0)
      average.copy_(current);
    else if (options.decay)
      average.copy_(average * *options.decay + current * (1 - *options.decay));
    else
      average.copy_(average + (current - average) / static_cast<double>(count + 1));
  }
  for (std::size_t i = 0; i < kept.size() && !options.use_buffers; ++i) {
    Tensor buffer = kept[i];
    buffer.copy_(newest[i].to(buffer.device()));
  }
}

}  // namespace lazuli::optim
