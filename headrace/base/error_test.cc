// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

#include <gtest/gtest.h>

#include <vector>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

TEST(Error, NamesInAMessageDoNotMoveTheCursor) {
  const Error error{.what = "there is no array 'a\x1b[31mred\x7f'",
                    .where = {.file = "caf\xc3\xa9\x1b]0;title\x07.npz"},
                    .hint = "there is 'b\rc'\nand more"};
  EXPECT_EQ(error.message(),
            "there is no array 'a\\x1b[31mred\\x7f'\n  where: caf\xc3\xa9\\x1b]0;title\\x07.npz\n"
            "  help: there is 'b\\x0dc'\nand more");
}

TEST(ErrorCode, IsFoundByItsIdOnceItIsDeclared) {
  EXPECT_EQ(Registry<ErrorCode>::find("HR0000"), nullptr);
  static const ErrorCode kDeclared{"HR0000", ErrorKind::kData, "a test's", "Nothing is wrong."};
  EXPECT_EQ(Registry<ErrorCode>::find("HR0000"), &kDeclared);
}

TEST(ErrorCode, NoTwoHaveOneId) {
  const std::vector<const ErrorCode*> all = Registry<ErrorCode>::all();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_NE(all[i - 1]->id, all[i]->id) << all[i]->title;
  EXPECT_GT(all.size(), 150u);
}

}  // namespace
}  // namespace headrace
