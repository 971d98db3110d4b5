#include "lazy/graphs/profile_page.h"

#include "ir/support/str.h"
#include "lazy/graphs/page_json.h"
#include "lazy/graphs/profile_page_script.h"

namespace lazuli::lazy {
namespace {

// The text of a script ends at "</script", wherever that stands.
std::string InScript(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '/' && text.ends_with('<')) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string ProfilePage(std::string_view title, std::string_view trace) {
  return ir::Str(
      "<!doctype html><html lang=en><head><meta charset=utf-8><title>lazuli: profile</title>",
      kProfilePageStyle, "</head><body>\n", kProfilePageBody,
      "<script id=title-text type=\"application/json\">", JsonText(title), "</script>\n",
      "<script id=data type=\"application/json\">", InScript(trace), "</script>\n<script>",
      kProfilePageScript, "</script>\n</body></html>\n");
}

}  // namespace lazuli::lazy
