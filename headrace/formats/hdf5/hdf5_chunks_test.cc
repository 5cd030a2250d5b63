// SPDX-License-Identifier: Apache-2.0
// Indexes of chunks written by hand: sections III.A.1, III.A.2 and VIII of the format's
// specification.
#include "headrace/formats/hdf5/hdf5_chunks.h"

#include <gtest/gtest.h>

#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace {

constexpr uint64_t kIndex = 200, kLeaf = 1000, kData = 4000, kNone = UINT64_MAX;

// A dataset of 4 x 6 bytes in chunks of 2 x 3.
Hdf5Layout layout_of(Hdf5Index index, std::vector<uint64_t> chunk = {2, 3}) {
  Hdf5Layout layout;
  layout.what = Hdf5Layout::Class::kChunked;
  layout.address = kIndex;
  layout.index = index;
  layout.chunk = std::move(chunk);
  layout.element_bytes = 1;
  return layout;
}
Hdf5Space space_of(std::vector<uint64_t> sizes = {4, 6}, std::vector<uint64_t> most = {}) {
  if (most.empty()) most = sizes;
  return {.sizes = std::move(sizes), .most = std::move(most)};
}

// "cell@address+bytes" of each written chunk, or the error.
std::string chunks(TestFile& made, const Hdf5Layout& layout, const Hdf5Space& space = space_of(),
                   bool filtered = false) {
  made.put(kData + 200, "x");
  const Hdf5File file = made.open();
  std::string out;
  const std::string why = refusal([&] {
    const Hdf5ChunkIndex index(file, layout, space, 6, filtered);
    uint64_t cells = 1;
    for (const uint64_t count : index.grid()) cells *= count;
    for (uint64_t cell = 0; cell < cells; ++cell) {
      const std::optional<Hdf5Chunk> chunk = index.next(cell, cells);
      if (!chunk) break;
      out += (out.empty() ? "" : " ") + std::to_string(cell) + "@" +
             std::to_string(chunk->address) + "+" + std::to_string(chunk->bytes);
    }
  });
  return why.empty() ? out : why;
}

struct OldChunk {
  uint64_t row, column, address = kData;
  uint32_t bytes = 6;
};
std::string old_node(const std::vector<OldChunk>& chunks, uint8_t level = 0) {
  std::string out = "TREE" + u8(1) + u8(level) + u16(chunks.size()) + u64(kNone) + u64(kNone);
  for (const OldChunk& chunk : chunks) {
    out += u32(chunk.bytes) + u32(0) + u64(chunk.row) + u64(chunk.column) + u64(0) +
           u64(chunk.address);
  }
  return out + zeros(32);  // the key after the last
}
std::string old_tree(const std::vector<OldChunk>& of_root, bool filtered = false) {
  TestFile file;
  file.put(kIndex, old_node(of_root));
  return chunks(file, layout_of(Hdf5Index::kOldTree), space_of(), filtered);
}

TEST(Hdf5OldTree, locates_chunks) {
  EXPECT_EQ(old_tree({{0, 0}, {0, 3, kData + 6}, {2, 0, kData + 12}, {2, 3, kData + 18}}),
            "0@4000+6 1@4006+6 2@4012+6 3@4018+6");
  EXPECT_EQ(old_tree({{0, 3, kData, 4}, {2, 0, kData + 6, 9}}, true), "1@4000+4 2@4006+9");
  // Past the dataset's end: it may have been truncated.
  EXPECT_EQ(old_tree({{0, 0}, {4, 0, kData + 6}, {0, 6, kData + 12}}), "0@4000+6");
  TestFile two_levels;
  two_levels.put(kIndex, old_node({{0, 0, kLeaf}, {2, 0, kLeaf + 300}}, 1));
  two_levels.put(kLeaf, old_node({{0, 0}}));
  two_levels.put(kLeaf + 300, old_node({{2, 0, kData + 6}}));
  EXPECT_EQ(chunks(two_levels, layout_of(Hdf5Index::kOldTree)), "0@4000+6 2@4006+6");
}

TEST(Hdf5OldTree, is_checked) {
  EXPECT_EQ(old_tree({{0, 0}, {0, 0, kData + 6}}),
            "HR0489: an index of chunks that has a chunk twice");
  EXPECT_EQ(old_tree({{0, 0, kNone}}), "HR0489: an index of chunks without a part");
  EXPECT_EQ(old_tree({{1, 0}}), "HR0489: a chunk that does not begin where chunks do");
  EXPECT_EQ(old_tree({{0, 0, kData, 5}}), "HR0489: a chunk of 5 bytes instead of 6");
  const std::string outside = " bytes is not inside the file of 4201 bytes";
  EXPECT_EQ(old_tree({{0, 0, 4196}}), "HR0489: a chunk of 6" + outside);
  EXPECT_EQ(old_tree({{0, 0, kData, 0}}, true), "HR0489: a chunk of 0" + outside);
  EXPECT_EQ(
      old_tree({{0, 0, 72, 4000}, {0, 3, 72, 4000}}, true),
      "HR0489: an index of chunks that refers to more bytes than the file has: chunks overlap");
}

TEST(Hdf5OldTree, with_invalid_nodes_is_rejected) {
  const std::string no_tree = "HR0489: an index of chunks that is not a B-tree of chunks";
  const auto with = [](size_t at, const std::string& bytes) {
    TestFile file;
    file.put(kIndex, old_node({{0, 0, kLeaf}}, 1));
    file.put(kLeaf, old_node({{0, 0}}));
    file.put(kIndex + at, bytes);
    return chunks(file, layout_of(Hdf5Index::kOldTree));
  };
  EXPECT_EQ(with(0, "T"), "0@4000+6");
  EXPECT_EQ(with(0, "X"), no_tree);
  EXPECT_EQ(with(4, u8(0)), no_tree);  // type of a group
  EXPECT_EQ(with(5, u8(33)), no_tree);
  EXPECT_EQ(with(5, u8(2)), no_tree);  // its child is a node of level 0
  EXPECT_EQ(with(24 + 32, u64(kIndex)), "HR0489: an index of chunks that refers to itself");
}

TEST(Hdf5Chunks, one_chunk_needs_no_index) {
  TestFile file;
  Hdf5Layout layout = layout_of(Hdf5Index::kSingle, {4, 6});
  EXPECT_EQ(chunks(file, layout), "0@200+6");
  layout.single_bytes = 9;
  EXPECT_EQ(chunks(file, layout, space_of(), true), "0@200+9");
  EXPECT_EQ(chunks(file, layout_of(Hdf5Index::kSingle)),
            "HR0489: an index of chunks that has a single chunk, but several are needed");
}

TEST(Hdf5Chunks, may_be_contiguous_in_the_file) {
  TestFile file;
  const Hdf5Layout layout = layout_of(Hdf5Index::kImplicit);
  EXPECT_EQ(chunks(file, layout), "0@200+6 1@206+6 2@212+6 3@218+6");
  // The index has space for the maximum size of the dataset.
  EXPECT_EQ(chunks(file, layout, space_of({4, 6}, {4, 9})), "0@200+6 1@206+6 2@218+6 3@224+6");
  const std::string outside = "HR0489: chunks that are not inside the file";
  EXPECT_EQ(chunks(file, layout, space_of(), true), outside);
  EXPECT_EQ(chunks(file, layout, space_of({4, 6}, {4, kNone})), outside);
  EXPECT_EQ(chunks(file, layout, space_of({4000, 6})), outside);
}

TEST(Hdf5Chunks, are_missing_if_never_written) {
  TestFile file;
  Hdf5Layout layout = layout_of(Hdf5Index::kOldTree);
  EXPECT_EQ(chunks(file, layout, space_of({0, 6})), "");
  layout.address = kNone;
  EXPECT_EQ(chunks(file, layout), "");
  EXPECT_EQ(chunks(file, layout, space_of({kNone, kNone})),
            "HR0489: a dataset of more chunks than 64 bits can count");
}

TEST(Hdf5ArrayIndex, matches_the_growth_of_its_dataset) {
  TestFile file;
  const std::string why = "HR0489: an index of chunks that ";
  EXPECT_EQ(chunks(file, layout_of(Hdf5Index::kFixedArray), space_of({4, 6}, {kNone, 6})),
            why + "cannot index a dataset that grows in this way");
  const Hdf5Layout extensible = layout_of(Hdf5Index::kExtensible);
  EXPECT_EQ(chunks(file, extensible, space_of({4, 6}, {kNone, kNone})),
            why + "cannot index a dataset that grows in this way");
  EXPECT_EQ(chunks(file, extensible), why + "can grow, but its dataset cannot");
  EXPECT_EQ(
      chunks(file, layout_of(Hdf5Index::kFixedArray), space_of({4, 6}, {kNone - 1, kNone - 1})),
      why + "has too many chunks");
}

// A version 2 B-tree with one leaf.
std::string young_tree(const std::vector<std::string>& records, bool filtered = false) {
  const uint8_t type = filtered ? 11 : 10;
  std::string leaf = "BTLF" + u8(0) + u8(type);
  for (const std::string& record : records) leaf += record;
  TestFile file;
  file.put_checked(kIndex, "BTHD" + u8(0) + u8(type) + u32(2048) + u16(records[0].size()) + u16(0) +
                               u8(100) + u8(40) + u64(kLeaf) + u16(records.size()) +
                               u64(records.size()));
  file.put_checked(kLeaf, leaf);
  return chunks(file, layout_of(Hdf5Index::kTree), space_of({4, 6}, {kNone, kNone}), filtered);
}

TEST(Hdf5NewTree, locates_chunks) {
  EXPECT_EQ(young_tree({u64(kData) + u64(0) + u64(1), u64(kNone) + u64(1) + u64(0),
                        u64(kData + 6) + u64(1) + u64(1)}),
            "1@4000+6 3@4006+6");
  EXPECT_EQ(young_tree({u64(kData) + u16(9) + u32(0) + u64(1) + u64(0)}, true), "2@4000+9");
}

TEST(Hdf5NewTree, has_records_of_the_right_size) {
  const std::string wrong = "HR0489: an index of chunks that has wrong records";
  EXPECT_EQ(young_tree({u64(kData) + u64(0)}), wrong);
  EXPECT_EQ(young_tree({u64(kData) + u32(0) + u64(1) + u64(0)}, true), wrong);
  EXPECT_EQ(young_tree({u64(kData) + u64(9) + u8(0) + u32(0) + u64(1) + u64(0)}, true), wrong);
}

}  // namespace
}  // namespace headrace::hdf5_test
