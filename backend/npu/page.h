// What pages of HTML about the NPU share: how they look, and numbers as people read them.
#pragma once

#include <string>
#include <string_view>

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

inline constexpr std::string_view kPageStyle = R"(<style>
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#222;background:#fff}
h1{font-size:22px}h2{font-size:17px;margin-top:2em}table{border-collapse:collapse;width:100%}
th,td{padding:3px 8px;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th{background:#f3f5f8}td:first-child,th:first-child{text-align:left;white-space:normal}
td.text,th.text{text-align:left;white-space:normal}pre{white-space:pre-wrap}
.bar{display:inline-block;height:9px;background:#3b6ea8;vertical-align:middle}
.note{color:#666}details{margin:.6em 0}summary{cursor:pointer;color:#3b6ea8}
.tree td:first-child{white-space:nowrap}.i1{padding-left:2em}.i2{padding-left:4em}.i3{padding-left:6em}
svg text{font:11px system-ui,sans-serif;fill:#333}svg text.title{font-size:13px;fill:#111}
</style>)";

// With &, <, > and quotes as entities.
std::string Escaped(std::string_view text);
std::string Fixed(double value, int digits);
// "5.44 ms", "0.2 us": three digits; the summary's way.
std::string Scaled(double value, std::string_view unit);
// "12.3 M".
std::string Large(double value);

}  // namespace lazuli::npu
