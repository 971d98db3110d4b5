// A profile as a page of HTML that needs no network: a flame chart of every track, values over time
// (bytes in use, runs in flight) and the time by line.
#pragma once

#include <string>
#include <string_view>

namespace lazuli::lazy {

// `trace`: JSON as ir/support/trace_json.h writes it.
std::string ProfilePage(std::string_view title, std::string_view trace);

}  // namespace lazuli::lazy
