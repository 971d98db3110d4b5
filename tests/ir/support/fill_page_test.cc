#include "ir/support/fill_page.h"

#include <gtest/gtest.h>

namespace lazuli::ir {
namespace {

TEST(FillPageTest, EachPlaceOfANameGetsItsText) {
  EXPECT_EQ(FillPage("<title>{{title}}</title><h1>{{title}}</h1>{{rows}}",
                     {{"title", "a"}, {"rows", "<tr>"}}),
            "<title>a</title><h1>a</h1><tr>");
}

TEST(FillPageTest, TextThatLooksLikeAPlaceStays) {
  EXPECT_EQ(FillPage("{{a}}{{b}}", {{"a", "{{b}}"}, {"b", "{{a}}"}}), "{{b}}{{a}}");
}

TEST(FillPageTest, OtherBracesAreTheScripts) {
  EXPECT_EQ(FillPage("f({{{a}}, {{x}}, {y}) {", {{"a", "1"}}), "f({1, {{x}}, {y}) {");
}

TEST(FillPageDeathTest, APartWithoutAPlaceIsABug) {
  EXPECT_DEATH(FillPage("{{a}}", {{"b", ""}}), "no place for b");
}

}  // namespace
}  // namespace lazuli::ir
