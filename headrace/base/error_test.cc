// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/error.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace headrace
