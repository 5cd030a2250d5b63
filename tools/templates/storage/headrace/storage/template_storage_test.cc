// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "headrace/storage/file.h"

namespace headrace {
namespace {

TEST(TemplateStorage, IsReadByWhoeverReadsFiles) {
  Buffer bytes;
  ASSERT_TRUE(read_file("template://abc", bytes));
  EXPECT_EQ(std::string(bytes.bytes().begin(), bytes.bytes().end()), "abc");
}

}  // namespace
}  // namespace headrace
