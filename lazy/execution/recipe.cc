#include "lazy/execution/recipe.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "ir/support/str.h"
#include "lazy/execution/sync.h"

namespace lazuli::lazy {
namespace {

using Place = Recipe::Place;
using Scalar = Recipe::Scalar;

std::string AtSiteText(SiteId site) { return ir::InParentheses(site); }

bool SameOptions(const backend::CompileOptions& a, const backend::CompileOptions& b) {
  bool same = true;
  std::vector<const void*> fields;
  a.VisitAttrs([&](std::string_view, const auto& value) { fields.push_back(&value); });
  std::size_t i = 0;
  b.VisitAttrs([&]<class T>(std::string_view, const T& value) {
    same = same && *static_cast<const T*>(fields[i++]) == value;
  });
  return same;
}

// --- arguments

template <class T>
std::string Was(std::size_t i, std::string_view what, const T& now, const T& before) {
  return Str("argument ", i, what, " is ", now, ", it was ", before);
}

bool Requires(const TensorImpl& impl) {
  const AutogradMeta* const meta = impl.autograd();
  return meta != nullptr && (meta->requires_grad || meta->grad_fn);
}

std::string WhyNotArgument(const Recipe& recipe, absl::Span<const Tensor> arguments,
                           std::size_t i) {
  const Recipe::ArgumentGuard& a = recipe.arguments[i];
  const Tensor& x = arguments[i];
  const Storage& storage = x.storage();
  if (!(storage.shape() == a.shape)) return Was(i, "", storage.shape(), a.shape);
  if (!(storage.device() == a.device))
    return Was(i, "'s device", storage.device().ToString(), a.device.ToString());
  if (Requires(*x.impl()) != a.requires_grad || x.impl()->is_inference() != a.is_inference)
    return Str("argument ", i, a.requires_grad ? " requires no gradient" : " requires a gradient",
               ", other than before");
  const View* const view = storage.view();
  if ((view != nullptr) != a.is_view)
    return Str("argument ", i, a.is_view ? " is not a view" : " is a view", ", other than before");
  if (view != nullptr && (view->strides() != a.strides || view->offset() != a.offset ||
                          !(view->base()->shape() == a.base_shape)))
    return Str("argument ", i, " is another view");
  if (a.is_fixed && storage.id() != a.id)
    return Str("argument ", i, " is another tensor than before");
  return "";
}

// The same arguments are the same tensors, share storages, and are views of the same ones.
bool SharesAlike(const Recipe& recipe, absl::Span<const Tensor> arguments) {
  const auto written = [&](std::size_t i) {
    Storage& storage = arguments[i].storage();
    const View* const view = storage.view();
    return view == nullptr ? &storage : view->base().get();
  };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Recipe::ArgumentGuard& a = recipe.arguments[i];
    for (std::size_t j = 0; j < i; ++j) {
      const Recipe::ArgumentGuard& b = recipe.arguments[j];
      if ((written(i) == written(j)) != (a.same_base == b.same_base)) return false;
      if (written(i) != written(j)) continue;
      const bool same_storage = &arguments[i].storage() == &arguments[j].storage();
      const bool same_tensor = arguments[i].impl() == arguments[j].impl();
      if (same_storage != (a.same_storage == b.same_storage)) return false;
      if (same_tensor != (a.same_tensor == b.same_tensor)) return false;
    }
    if (a.is_fixed) continue;
    if (recipe.captured_bases.contains(written(i))) return false;
    for (const Recipe::Owner& owner : recipe.owners) {
      const TensorImpl* const impl =
          owner.argument >= 0 ? arguments[static_cast<std::size_t>(owner.argument)].impl()
                              : owner.impl.get();
      const AutogradMeta* const meta = impl->autograd();
      if (meta != nullptr && meta->grad.defined() &&
          meta->grad.impl()->storage().get() == written(i))
        return false;
    }
  }
  return true;
}

std::string_view ModeName(std::size_t mode) {
  static constexpr std::string_view kNames[] = {"grad mode", "inference mode", "default dtype",
                                                "autocast",  "default device", "a flag"};
  return mode < std::size(kNames) ? kNames[mode] : "an argument that is not a tensor";
}

std::string WhyNotCaptured(const Recipe& recipe) {
  for (const Place& place : recipe.places) {
    for (const auto& [tensor, required] : place.tensors) {
      if (tensor->storage() != place.storage)
        return Str("a tensor ", place.shape, " that it uses", AtSiteText(place.site),
                   " has other data");
      if (Requires(*tensor) != required)
        return Str("requires_grad of a tensor ", place.shape, " that it uses",
                   AtSiteText(place.site), " changed");
    }
  }
  return "";
}

std::string WhyNotOwners(const Recipe& recipe, absl::Span<const Tensor> arguments) {
  for (const Recipe::Owner& owner : recipe.owners) {
    const TensorImpl* const impl = owner.argument >= 0
                                       ? arguments[static_cast<std::size_t>(owner.argument)].impl()
                                       : owner.impl.get();
    const AutogradMeta* const meta = impl->autograd();
    const bool has_grad = meta != nullptr && meta->grad.defined();
    if (meta != nullptr && meta->hooks && !meta->hooks->empty())
      return Str("a tensor ", impl->storage()->shape(), " has a hook of its gradient");
    if (has_grad == owner.had_grad) continue;
    return Str("a tensor ", impl->storage()->shape(),
               has_grad ? " has a gradient that it had not" : " has no gradient, which it had");
  }
  return "";
}

// --- two recordings

std::string WhatDiffersInPlaces(const Recipe& a, const Recipe& b) {
  for (std::size_t p = 0; p < std::min(a.places.size(), b.places.size()); ++p) {
    const Place &x = a.places[p], &y = b.places[p];
    if (x.kind != y.kind || x.index != y.index || x.storage != y.storage ||
        x.is_number != y.is_number || !(x.shape == y.shape))
      return Str("it uses another tensor ", y.shape, AtSiteText(y.site));
    if (x.same_data != y.same_data)
      return Str("a tensor ", y.shape, AtSiteText(y.site), " had the elements of another one once");
  }
  if (a.places.size() != b.places.size()) {
    const bool more = b.places.size() > a.places.size();
    const Place& place = (more ? b : a).places[std::min(a.places.size(), b.places.size())];
    return Str(more ? "it uses one more tensor " : "it no longer uses a tensor ", place.shape,
               AtSiteText(place.site));
  }
  if (a.owners.size() != b.owners.size()) return "it uses the gradients of other tensors";
  for (std::size_t i = 0; i < a.owners.size(); ++i) {
    const Recipe::Owner &x = a.owners[i], &y = b.owners[i];
    if (x.argument != y.argument || x.impl != y.impl)
      return "it uses the gradients of other tensors";
    if (x.had_grad != y.had_grad)
      return y.had_grad ? "a tensor has a gradient since" : "a tensor has no gradient any more";
  }
  return "";
}

std::string WhatDiffersInScalars(const Recipe& a, const Recipe& b) {
  if (a.scalars.size() != b.scalars.size()) return "it has other numbers";
  for (std::size_t i = 0; i < a.scalars.size(); ++i) {
    const Scalar &x = a.scalars[i], &y = b.scalars[i];
    if (x.kind != y.kind || x.index != y.index || x.part != y.part)
      return Str("a number", AtSiteText(y.site), " comes from elsewhere");
    if (x.kind == Scalar::Kind::kConstant && x.cell != y.cell)
      return Str("a number", AtSiteText(y.site),
                 " is another one in each call; give it as an argument that is a tensor");
  }
  return "";
}

absl::StatusOr<bool> SameElements(const DataPtr& a, const DataPtr& b) {
  constexpr int64_t kMostBytes = 1 << 20;  // that are compared
  if (a == b) return true;
  if (!(a->shape() == b->shape()) || !(a->device() == b->device())) return false;
  LAZULI_ASSIGN_OR_RETURN(const backend::BufferPtr x, a->Wait());
  LAZULI_ASSIGN_OR_RETURN(const backend::BufferPtr y, b->Wait());
  LAZULI_ASSIGN_OR_RETURN(const Literal left, x->device().client->ToHost(*x));
  LAZULI_ASSIGN_OR_RETURN(const Literal right, y->device().client->ToHost(*y));
  if (left.byte_size() != right.byte_size() || left.byte_size() > kMostBytes) return false;
  return std::memcmp(left.raw(), right.raw(), static_cast<std::size_t>(left.byte_size())) == 0;
}

std::string WhatDiffersOnTheHost(const Recipe& a, const Recipe& b) {
  if (a.draws.size() != b.draws.size()) return "it draws other random numbers";
  for (std::size_t i = 0; i < a.draws.size(); ++i) {
    if (a.draws[i].numbers != b.draws[i].numbers ||
        a.draws[i].generator.shared_state() != b.draws[i].generator.shared_state())
      return "it draws other random numbers";
  }
  if (a.actions.size() != b.actions.size()) return "another optimiser steps";
  for (std::size_t i = 0; i < a.actions.size(); ++i) {
    if (a.actions[i].action->actor() != b.actions[i].action->actor())
      return "another optimiser steps";
    if (a.actions[i].what != b.actions[i].what || a.actions[i].count != b.actions[i].count)
      return "an optimiser steps in another way";
  }
  return "";
}

bool SameEffects(const Recipe& a, const Recipe& b) {
  const auto same = [](const auto& x, const auto& y, auto equal) {
    return std::equal(x.begin(), x.end(), y.begin(), y.end(), equal);
  };
  return a.results == b.results && a.donated == b.donated &&
         same(a.roots, b.roots,
              [](const auto& x, const auto& y) {
                return x.replaced == y.replaced && x.before == y.before &&
                       x.is_wanted == y.is_wanted && x.is_view == y.is_view && x.shape == y.shape;
              }) &&
         same(a.writes, b.writes,
              [](const auto& x, const auto& y) {
                return x.place == y.place && x.content == y.content;
              }) &&
         same(a.storages, b.storages,
              [](const auto& x, const auto& y) {
                return x.shape == y.shape && x.content == y.content && x.is_view == y.is_view &&
                       x.base == y.base && x.strides == y.strides && x.offset == y.offset;
              }) &&
         same(a.tensors, b.tensors,
              [](const auto& x, const auto& y) {
                return x.storage == y.storage && x.base == y.base && x.view_kind == y.view_kind;
              }) &&
         same(a.gradients, b.gradients,
              [](const auto& x, const auto& y) { return x.owner == y.owner && x.to == y.to; });
}

std::string WhatDiffersInArguments(const Recipe& a, const Recipe& b) {
  if (a.arguments.size() != b.arguments.size()) return "there are more or fewer arguments";
  for (std::size_t i = 0; i < a.arguments.size(); ++i) {
    const Recipe::ArgumentGuard &x = a.arguments[i], &y = b.arguments[i];
    if (!(x.shape == y.shape)) return Was(i, "", y.shape, x.shape);
    if (!(x.device == y.device) || x.requires_grad != y.requires_grad ||
        x.is_inference != y.is_inference || x.is_view != y.is_view || x.strides != y.strides ||
        x.offset != y.offset || !(x.base_shape == y.base_shape) || x.same_tensor != y.same_tensor ||
        x.same_storage != y.same_storage || x.same_base != y.same_base)
      return Str("argument ", i, " is of another kind");
  }
  return "";
}

}  // namespace

DataPtr TakenData(const Shape& shape, backend::Device device) {
  auto data = MakeIntrusive<DataHandle>(shape, device);
  const auto fault = MakeIntrusive<Fault>(
      FailedPrecondition("the elements of ", shape,
                         " were given to a compiled function, which has taken their memory"));
  fault->Tell();
  data->Set(fault);
  return data;
}

std::string WhyOther(const Recipe& first, const Recipe& second) {
  if (first.modes.size() != second.modes.size()) return "there are more or fewer arguments";
  for (std::size_t i = 0; i < first.modes.size(); ++i) {
    if (first.modes[i] != second.modes[i]) return Str(ModeName(i), " is another one");
  }
  return WhatDiffersInArguments(first, second);
}

absl::StatusOr<std::string> WhatDiffers(const Recipe& first, const Recipe& second) {
  std::string why = WhyOther(first, second);
  if (why.empty()) why = WhatDiffersInPlaces(first, second);
  if (why.empty()) why = WhatDiffersOnTheHost(first, second);
  if (!why.empty()) return why;
  if (first.program != second.program || !(first.device == second.device)) {
    return second.program == nullptr
               ? std::string("nothing runs any more")
               : Str("it is another program: ", second.program->recompile.Sentence());
  }
  why = WhatDiffersInScalars(first, second);
  if (!why.empty()) return why;
  if (first.inputs != second.inputs) return "its program has other inputs";
  for (std::size_t i = 0; i < first.constants.size() && i < second.constants.size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const bool same, SameElements(first.constants[i], second.constants[i]));
    if (!same)
      return Str("a tensor ", second.constants[i]->shape(),
                 " that it makes of values of the host has others in each call; give it as an "
                 "argument");
  }
  if (first.constants.size() != second.constants.size() || !SameEffects(first, second))
    return "what it writes and returns is something else";
  return "";
}

void Generalize(const Recipe& from, Recipe& to) {
  for (std::size_t i = 0; i < to.arguments.size(); ++i) {
    if (!from.arguments[i].is_fixed || from.arguments[i].id != to.arguments[i].id)
      to.arguments[i].is_fixed = false;
  }
}

std::string WhyNot(const Recipe& recipe, absl::Span<const uint64_t> modes,
                   absl::Span<const Tensor> arguments) {
  if (arguments.size() != recipe.arguments.size())
    return Str("there are ", arguments.size(), " tensors, not ", recipe.arguments.size());
  if (modes.size() != recipe.modes.size()) return "there are more or fewer arguments";
  for (std::size_t i = 0; i < modes.size(); ++i) {
    if (modes[i] != recipe.modes[i]) return Str(ModeName(i), " is another one");
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string why = WhyNotArgument(recipe, arguments, i);
    if (!why.empty()) return why;
  }
  std::string why = WhyNotCaptured(recipe);
  if (why.empty()) why = WhyNotOwners(recipe, arguments);
  if (!why.empty()) return why;
  if (!SharesAlike(recipe, arguments)) return "arguments share memory in another way";
  if (recipe.program == nullptr) return "";
  const absl::StatusOr<backend::CompileOptions> options = CompileOptionsFor(recipe.device);
  return options.ok() && SameOptions(*options, recipe.options) ? "" : "options of programs changed";
}

}  // namespace lazuli::lazy
