#include "lazy/graphs/profile_page.h"

#include "ir/support/str.h"
#include "lazy/graphs/page_json.h"
#include "lazy/graphs/profile_page_script.h"

namespace lazuli::lazy {

std::string ProfilePage(std::string_view title, std::string_view trace) {
  return ir::Str(
      "<!doctype html><html lang=en><head><meta charset=utf-8><title>lazuli: profile</title>",
      kProfilePageStyle, "</head><body>\n", kProfilePageBody,
      "<script id=title-text type=\"application/json\">", JsonText(title), "</script>\n",
      "<script id=data type=\"application/json\">", InScript(trace), "</script>\n<script>",
      kProfilePageScript, "</script>\n</body></html>\n");
}

}  // namespace lazuli::lazy
