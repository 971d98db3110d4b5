// SpanCollector: the spans from its beginning on, for as long as it lives.
//
// Several may live at a time, each of which sees all spans: a profile that the program takes and
// one that the environment asks for. Tracing is on while there is one.
#pragma once

#include <cstdint>

#include "ir/support/span.h"

namespace lazuli::ir {

class SpanCollector {
 public:
  SpanCollector();
  ~SpanCollector();
  SpanCollector(const SpanCollector&) = delete;
  SpanCollector& operator=(const SpanCollector&) = delete;

  // Those that began after this did and have ended.
  TakenSpans Spans() const;

 private:
  const int64_t begin_ns_;
};

}  // namespace lazuli::ir
