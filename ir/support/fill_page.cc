#include "ir/support/fill_page.h"

#include <algorithm>

#include "ir/support/check.h"

namespace lazuli::ir {
namespace {

constexpr std::string_view kOpen = "{{", kClose = "}}";

std::string Braced(const PagePart& part) {
  return std::string(kOpen).append(part.name).append(kClose);
}

}  // namespace

std::string FillPage(std::string_view page, std::initializer_list<PagePart> parts) {
  std::size_t size = page.size();
  for (const PagePart& part : parts) {
    LAZULI_CHECK(page.find(Braced(part)) != std::string_view::npos, "no place for ", part.name);
    size += part.text.size();
  }
  std::string filled;
  filled.reserve(size);
  while (true) {
    const std::size_t open = std::min(page.find(kOpen), page.size());
    filled += page.substr(0, open);
    page.remove_prefix(open);
    if (page.empty()) return filled;
    const auto part = std::find_if(parts.begin(), parts.end(),
                                   [&](const PagePart& p) { return page.starts_with(Braced(p)); });
    if (part == parts.end()) {
      filled += page.front();  // the next brace may be the first of a pair
      page.remove_prefix(1);
    } else {
      filled += part->text;
      page.remove_prefix(Braced(*part).size());
    }
  }
}

}  // namespace lazuli::ir
