// XLA_METRICS_FILE: the metrics report at every sync, in torch_xla's form.
//
// [MetricsData; step=3]
// Metric: CompileTime
// ...
#pragma once

namespace lazuli::lazy {

// Observes syncs if the flag is set; idempotent.
void InitializeMetricsFile();

}  // namespace lazuli::lazy
