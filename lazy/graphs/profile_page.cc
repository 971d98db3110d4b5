#include "lazy/graphs/profile_page.h"

#include "ir/support/fill_page.h"
#include "lazy/graphs/page_json.h"
#include "pages/profile.h"

namespace lazuli::lazy {

std::string ProfilePage(std::string_view title, std::string_view trace) {
  return ir::FillPage(pages::kProfile, {{"title", JsonText(title)}, {"trace", InScript(trace)}});
}

}  // namespace lazuli::lazy
