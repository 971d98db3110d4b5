// Pages of HTML that a program fills in.
//
// The page itself is a file beside the code that fills it (cmake/Pages.cmake), where editors and
// linters see it as what it is.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace lazuli::ir {

struct PagePart {
  std::string_view name, text;
};

// The page with `text` in each place where it has {{name}}. The text goes in as it is: who makes it
// escapes it, for HTML or for JSON in a script. Braces around any other name stay, since scripts
// have some. Every part must have a place.
std::string FillPage(std::string_view page, std::initializer_list<PagePart> parts);

}  // namespace lazuli::ir
