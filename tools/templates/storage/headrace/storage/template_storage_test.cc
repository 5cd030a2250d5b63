// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "headrace/storage/file.h"

namespace headrace {
namespace {

TEST(TemplateStorage, IsReadByTheFunctionsThatReadFiles) {
  Buffer bytes;
  ASSERT_TRUE(read_file("template://abc", bytes));
  EXPECT_EQ(std::string(bytes.bytes().begin(), bytes.bytes().end()), "abc");
}

TEST(TemplateStorage, CompletesLaterWithTheRequestedBytes) {
  ASSERT_TRUE(is_async("template://abcdef"));
  const Result<File> file = File::open("template://abcdef");
  ASSERT_TRUE(file);
  std::string piece(3, ' ');
  auto* const memory = reinterpret_cast<uint8_t*>(piece.data());
  ASSERT_TRUE(file->read(2, {memory, piece.size()}));
  EXPECT_EQ(piece, "cde");
}

}  // namespace
}  // namespace headrace
