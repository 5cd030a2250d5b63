// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

TEST(Error, ControlCharactersInAMessageAreEscaped) {
  const Error error{.what = "there is no array 'a\x1b[31mred\x7f'",
                    .where = Where{.file = "caf\xc3\xa9\x1b]0;title\x07.npz"},
                    .hint = "there is 'b\rc'\nand more"};
  EXPECT_EQ(error.message(),
            "there is no array 'a\\x1b[31mred\\x7f'\n  where: caf\xc3\xa9\\x1b]0;title\\x07.npz\n"
            "  help: there is 'b\\x0dc'\nand more");
}

TEST(ErrorCode, IsFoundByItsIdOnceDeclared) {
  EXPECT_EQ(Registry<ErrorCode>::find("HR9999"), nullptr);
  static const ErrorCode kDeclared{"HR9999", ErrorKind::kData, "a test's", "Nothing is wrong."};
  EXPECT_EQ(Registry<ErrorCode>::find("HR9999"), &kDeclared);
}

TEST(ErrorCode, IdsAreUnique) {
  const std::vector<const ErrorCode*> all = Registry<ErrorCode>::all();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_NE(all[i - 1]->id, all[i]->id) << all[i]->title;
  EXPECT_GT(all.size(), 150u);
}

TEST(Error, NoMessageShowsPasswordsOrTokens) {
  EXPECT_EQ(without_secrets("no \"https://me:word@host/a b?sig=x&y=1\" here, https://h/c?t=1 d"),
            "no \"https://host/a b?...\" here, https://h/c?... d");
  EXPECT_EQ(without_secrets("http://me:word@host/a?sig=x"), "http://host/a?...");
  EXPECT_EQ(without_secrets("s3://bucket/a-??.tar"), "s3://bucket/a-??.tar");
  const Error error{.what = "nothing at http://h/?k=v", .where = Where{.file = "http://h/?k=v"}};
  EXPECT_EQ(error.message(), "nothing at http://h/?...\n  where: http://h/?...");
}

}  // namespace
}  // namespace headrace
