// SPDX-License-Identifier: Apache-2.0
// Fractal heaps written by hand: section III.G of the format's specification.
#include "headrace/formats/hdf5/hdf5_heap.h"

#include <gtest/gtest.h>

#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace hdf5_heap_test {

constexpr uint64_t kHeap = 200, kRoot = 1000, kOther = 4000;

struct Header {
  uint8_t version = 0, flags = 0;
  uint16_t filter_bytes = 0, width = 2, bits = 32, rows = 0;
  uint64_t first = 64, max_direct = 128, root = kRoot;
};

std::string header_of(const Header& heap) {
  return "FRHP" + u8(heap.version) + u16(6) + u16(heap.filter_bytes) + u8(heap.flags) + u32(4096) +
         zeros(12 * 8) + u16(heap.width) + u64(heap.first) + u64(heap.max_direct) + u16(heap.bits) +
         u16(1) + u64(heap.root) + u16(heap.rows);
}

// A block of `bytes`, whose text begins after its 17-byte header.
std::string direct_block(uint64_t begin, size_t bytes, const std::string& text) {
  std::string out = "FHDB" + u8(0) + u64(kHeap) + u32(begin) + text;
  out.resize(bytes);
  return out;
}

std::string indirect_block(uint64_t begin, const std::vector<uint64_t>& entries) {
  std::string out = "FHIB" + u8(0) + u64(kHeap) + u32(begin);
  for (const uint64_t entry : entries) out += u64(entry);
  return out;
}

std::string id_of(uint64_t at, size_t bytes, uint8_t flags = 0) {
  return u8(flags) + u32(at) + u8(bytes);
}

// The text of an object, or the error.
std::string object(TestFile& made, const std::string& id) {
  std::string text;
  const Hdf5File file = made.open();
  const std::string why = refusal([&] {
    Hdf5Heap heap(file, kHeap);
    text = text_of(heap.object(span_of(id)));
  });
  return why.empty() ? text : why;
}

constexpr uint64_t kNone = UINT64_MAX;

// Rows of two blocks: of 64 bytes, 64, 128, and 256, which have tables of their own.
class BlockSequences : public testing::Test {
 protected:
  BlockSequences() {
    file.put_checked(kHeap, header_of({.rows = 4}));
    file.put_checked(kRoot,
                     indirect_block(0, {kNone, 2000, kNone, kNone, 2100, kNone, kNone, 2300}));
    file.put(2000, direct_block(64, 64, "second"));
    file.put(2100, direct_block(256, 128, "fifth"));
    file.put_checked(2300, indirect_block(768, {kNone, kNone, 2500, kNone}));
    file.put(2500, direct_block(896, 64, "deep"));
  }
  TestFile file;
};

TEST(Hdf5Heap, a_small_heap_is_one_block) {
  TestFile file;
  file.put_checked(kHeap, header_of({}));
  file.put(kRoot, direct_block(0, 64, "hello"));
  EXPECT_EQ(object(file, id_of(17, 5)), "hello");
  EXPECT_EQ(object(file, id_of(18, 3)), "ell");
}

TEST_F(BlockSequences, hold_the_objects_at_their_offsets) {
  const Hdf5File opened = file.open();
  Hdf5Heap heap(opened, kHeap);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(text_of(heap.object(span_of(id_of(64 + 17, 6)))), "second");
    EXPECT_EQ(text_of(heap.object(span_of(id_of(256 + 17, 5)))), "fifth");
    EXPECT_EQ(text_of(heap.object(span_of(id_of(896 + 17, 4)))), "deep");
  }
}

TEST_F(BlockSequences, contain_no_objects_outside_their_blocks) {
  EXPECT_EQ(object(file, id_of(20, 1)), "HR0489: an object in no block of a fractal heap");
  EXPECT_EQ(object(file, id_of(1024, 1)), "HR0489: an object beyond the end of a fractal heap");
  EXPECT_EQ(object(file, id_of(64 + 63, 2)),
            "HR0489: an object that does not fit into its block of a fractal heap");
}

TEST_F(BlockSequences, are_rejected_if_cyclic) {
  const auto both = [&](uint64_t first, uint64_t second) {
    const Hdf5File opened = file.open();
    Hdf5Heap heap(opened, kHeap);
    heap.object(span_of(id_of(first, 1)));
    return refusal([&] { heap.object(span_of(id_of(second, 1))); });
  };
  // The fifth block's entry refers to the second block; the last one refers to the root.
  file.put_checked(kRoot,
                   indirect_block(0, {kNone, 2000, kNone, kNone, 2000, kNone, kNone, kRoot}));
  EXPECT_EQ(both(64 + 17, 256 + 17), "HR0489: a fractal heap that refers to itself");
  EXPECT_EQ(both(64 + 17, 896 + 17), "HR0489: a fractal heap that refers to itself");
}

TEST_F(BlockSequences, are_rejected_if_they_belong_to_another_heap) {
  const std::string another = "HR0489: a block of another fractal heap";
  file.put(2000, direct_block(0, 64, "second"));
  EXPECT_EQ(object(file, id_of(64 + 17, 6)), another);
  file.put(2000, "FHDX");
  EXPECT_EQ(object(file, id_of(64 + 17, 6)), another);
  file.put_checked(2300, indirect_block(512, {kNone, kNone, 2500, kNone}));
  EXPECT_EQ(object(file, id_of(896 + 17, 4)), another);
}

TEST_F(BlockSequences, are_rejected_if_smaller_than_their_first_row) {
  file.put_checked(kHeap, header_of({.width = 4, .rows = 3, .max_direct = 64}));
  file.put_checked(kRoot, indirect_block(0, std::vector<uint64_t>(12, kOther)));
  EXPECT_EQ(object(file, id_of(8 * 64 + 17, 1)), "HR0489: a fractal heap with invalid rows");
}

TEST(Hdf5Heap, blocks_may_have_a_checksum) {
  TestFile file;
  file.put_checked(kHeap, header_of({.flags = 2}));
  std::string block = direct_block(0, 64, zeros(4) + "hello");
  // with zeros in place of the checksum
  const uint32_t sum = hdf5_metadata_checksum(span_of(block));
  block.replace(17, 4, u32(sum));
  file.put(kRoot, block);
  EXPECT_EQ(object(file, id_of(21, 5)), "hello");
  file.put(kRoot + 21, "j");
  EXPECT_EQ(object(file, id_of(21, 5)), "HR0489: the checksum of a fractal heap's block is wrong");
  // A 14-byte header in a block of 16.
  file.put_checked(kHeap, header_of({.flags = 2, .bits = 8, .first = 16}));
  file.put(kRoot, "FHDB" + u8(0) + u64(kHeap) + u8(0) + zeros(2));
  EXPECT_EQ(object(file, u8(0) + u8(14) + u8(1)),
            "HR0489: a block of a fractal heap that is too short");
}

TEST(Hdf5Heap, identifiers_are_checked) {
  TestFile file;
  file.put_checked(kHeap, header_of({}));
  file.put(kRoot, direct_block(0, 64, "hello"));
  EXPECT_EQ(object(file, id_of(17, 5, 0x40)), "HR0489: a wrong identifier in a fractal heap");
  EXPECT_EQ(object(file, id_of(17, 5).substr(0, 4)),
            "HR0489: a wrong identifier in a fractal heap");
  for (const uint8_t flags : {0x10, 0x20}) {  // huge and tiny objects
    EXPECT_EQ(object(file, id_of(17, 5, flags)),
              "HR0490: a group with a link of several kilobytes");
  }
  file.put_checked(kHeap, header_of({.root = kNone}));
  EXPECT_EQ(object(file, id_of(17, 5)), "HR0489: an object in an empty fractal heap");
}

TEST(Hdf5Heap, headers_are_checked) {
  const auto with = [](const Header& heap) {
    TestFile file;
    file.put_checked(kHeap, header_of(heap));
    return object(file, id_of(17, 5));
  };
  const std::string impossible = "HR0489: a fractal heap with invalid sizes";
  EXPECT_EQ(with({.version = 1}), impossible);
  EXPECT_EQ(with({.width = 0}), impossible);
  EXPECT_EQ(with({.width = 1025}), impossible);
  EXPECT_EQ(with({.bits = 0}), impossible);
  EXPECT_EQ(with({.bits = 65}), impossible);
  EXPECT_EQ(with({.first = 63}), impossible);
  EXPECT_EQ(with({.first = 256}), impossible);
  EXPECT_EQ(with({.max_direct = 192}), impossible);
  EXPECT_EQ(with({.max_direct = uint64_t{32} << 20}), impossible);
  EXPECT_EQ(with({.rows = 67}), "HR0489: a fractal heap of too many rows");
  EXPECT_EQ(with({.filter_bytes = 1}), "HR0490: a group with filtered links");
  TestFile file;
  file.put(kHeap, "FRHP");
  file.put(kRoot, "");
  EXPECT_EQ(object(file, id_of(17, 5)), "HR0489: a fractal heap has a wrong checksum");
}

}  // namespace hdf5_heap_test
}  // namespace headrace::hdf5_test
