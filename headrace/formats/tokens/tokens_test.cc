// SPDX-License-Identifier: Apache-2.0
// Expected tokens are written by hand; the layouts are what nanoGPT, llm.c and Megatron-LM publish.
#include "headrace/formats/tokens/tokens.h"

#include <gtest/gtest.h>

#include <cstring>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/sources/value_parts.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

template <class T>
std::string little(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Sequences of 2, 1 and 3 tokens of uint16; two documents.
std::string index_of_six() {
  return std::string(kMegatronMagic) + little<uint64_t>({1}) + '\x08' + little<uint64_t>({3, 3}) +
         little<int32_t>({2, 1, 3}) + little<int64_t>({0, 4, 6}) + little<int64_t>({0, 1, 3});
}
const std::string kSix = little<uint16_t>({10, 11, 12, 13, 14, 15});

std::vector<int64_t> tokens_of(const Source& source, int64_t index, size_t field = 0) {
  const Bytes bytes = bytes_of(source, index, field);
  std::vector<int64_t> out(bytes.size() / sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

using Ids = std::vector<int64_t>;

class Tokens : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(Tokens, TargetsAreShiftedByOne) {
  const SourcePtr source = open_source(folder_.write("a.bin", kSix),
                                       {{"format", std::string("tokens")}, {"window", int64_t{2}}});
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(tokens_of(*source, 0), (Ids{10, 11}));
  EXPECT_EQ(tokens_of(*source, 1), (Ids{12, 13}));
  EXPECT_EQ(tokens_of(*source, 1, 1), (Ids{13, 14}));
}

TEST_F(Tokens, APartOfADocumentIsReadAlone) {
  folder_.write("a.bin", kSix);
  const SourcePtr source =
      open_source(folder_.write("a.idx", index_of_six()), {{"window", std::monostate()}});
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(tokens_of(*source, 1), (Ids{12, 13, 14, 15}));
  EXPECT_EQ(value_lengths(*source, 0, {}), (Ids{2, 4}));
  const ValueParts* parts = parts_of(*source);
  ASSERT_NE(parts, nullptr);
  Buffer scratch;
  Ids part(2);
  ASSERT_TRUE(parts->read_part(1, 0, 1, 2, scratch, reinterpret_cast<uint8_t*>(part.data())));
  EXPECT_EQ(part, (Ids{13, 14}));
}

TEST_F(Tokens, DamagedIndexesAreErrorsOrHarmless) {
  folder_.write("a.bin", kSix);
  for_each_damage(index_of_six(), index_of_six().size(), [&](const std::string& index) {
    const std::string path = folder_.write("a.idx", index);
    try {
      const SourcePtr source =
          open_source(path, {{"format", std::string("tokens")}, {"window", std::monostate()}});
      int64_t tokens = 0;
      for (const int64_t length : value_lengths(*source, 0, {})) tokens += length;
      EXPECT_EQ(tokens, 6);
      for (int64_t i = 0; i < source->size(); ++i) EXPECT_TRUE(read_record(*source, i).result);
    } catch (const Exception& exception) {
      EXPECT_NE(exception.error().code->kind, ErrorKind::kStorage);
    }
  });
}

}  // namespace
}  // namespace headrace
