// A trace span at a line of the user's program.
#pragma once

#include <string_view>

#include "ir/support/span.h"
#include "lazy/tensor/site_scope.h"

namespace lazuli::lazy {

class SiteSpan : public ir::TraceSpan {
 public:
  explicit SiteSpan(ir::SpanKind kind, std::string_view name, SiteId site = CurrentSite(),
                    int64_t value = 0)
      : TraceSpan(
            [&]() -> const ir::SpanLabel& {
              return ir::KeepLabel({.kind = kind,
                                    .name = std::string(name),
                                    .source = ir::GetSite(site).ToString()});
            },
            value) {}
};

}  // namespace lazuli::lazy
