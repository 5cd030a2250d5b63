// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <clocale>

namespace headrace {
namespace {

TEST(Text, case_conversion_is_ascii_only) {
  EXPECT_EQ(lower_case("Train-00.TAR @[`{"), "train-00.tar @[`{");
  EXPECT_EQ(lower_case("\xC3\x84pfel \xC4"), "\xC3\x84pfel \xC4");  // in UTF-8 and in Latin-1
  EXPECT_EQ(lower_case(""), "");
}

TEST(Text, results_do_not_depend_on_the_locale) {
  const char* const before = std::setlocale(LC_CTYPE, nullptr);
  const std::string kept = before ? before : "C";
  for (const char* locale : {"tr_TR.UTF-8", "tr_TR.ISO-8859-9", "de_DE.ISO-8859-1", "C.UTF-8"}) {
    if (!std::setlocale(LC_CTYPE, locale)) continue;  // this machine does not have it
    EXPECT_TRUE(has_suffix("https://h/a.tif?sig=b/c.jpg", ".tif")) << locale;
    EXPECT_TRUE(has_suffix("PICTURE.TIF", ".tif")) << locale;
    EXPECT_EQ(lower_case("\xC4I"), "\xC4i") << locale;
  }
  std::setlocale(LC_CTYPE, kept.c_str());
}

TEST(Text, surrounding_blanks_are_stripped_and_inner_ones_preserved) {
  EXPECT_EQ(trimmed(" \t a b\v\f\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \r\n"), "");
  EXPECT_EQ(trimmed(""), "");
  EXPECT_EQ(trimmed(std::string_view("\0a\0", 3)), std::string_view("\0a\0", 3));
}

TEST(Text, a_suffix_needs_something_before_it) {
  EXPECT_TRUE(has_suffix("a.tar", ".tar"));
  EXPECT_TRUE(has_suffix("A.TAR", ".tar"));
  EXPECT_TRUE(has_suffix("a.tar", ".TAR"));
  EXPECT_FALSE(has_suffix(".tar", ".tar"));
  EXPECT_FALSE(has_suffix("tar", ".tar"));
  EXPECT_FALSE(has_suffix("a.tar.gz", ".tar"));
  EXPECT_FALSE(has_suffix("", ".tar"));
}

TEST(Text, one_of_several_suffixes_is_enough) {
  const std::array<std::string_view, 2> suffixes = {".tar", ".tgz"};
  EXPECT_TRUE(has_one_suffix("a.Tgz", suffixes));
  EXPECT_TRUE(has_one_suffix("a.tar", suffixes));
  EXPECT_FALSE(has_one_suffix("a.zip", suffixes));
  EXPECT_FALSE(has_one_suffix("a.tar", {}));
}

}  // namespace
}  // namespace headrace
