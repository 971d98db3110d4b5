#include "lowering/passes/xla_names.h"

namespace lazuli::lowering {
namespace {

constexpr XlaPassName kNames[] = {
    {"algsimp", "simplify"},
    {"batch-dot-simplification", "simplify"},
    {"call-inliner", "inline_calls"},
    {"constant_folding", "fold_constants"},
    {"dot_decomposer", "simplify"},
    {"flatten-call-graph", "inline_calls"},
    {"float-normalization", "widen_products"},
    {"fusion", "cpu_fuse"},
    {"gemv-rewriter", "reduce_vector_products"},
    {"layout-assignment", "cpu_assign_layouts"},
    {"reshape-mover", "simplify"},
    {"scan_expander", "expand_scans"},
    {"simplify-conditional", "simplify"},
    {"simplify-sorts", "simplify"},
    {"small-while-loop-hoisting", "cpu_fuse_loops"},
    {"transpose-folding", "fold_transposes"},
    {"tuple-simplifier", "simplify"},
    {"zero_sized_hlo_elimination", "simplify"},
};

}  // namespace

std::span<const XlaPassName> XlaPassNames() { return kNames; }

}  // namespace lazuli::lowering
