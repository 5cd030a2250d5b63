// SPDX-License-Identifier: Apache-2.0
// Groups written by hand: sections III.A.1, III.B, III.D of the format's specification.
#include "headrace/formats/hdf5/hdf5_groups.h"

#include <gtest/gtest.h>

#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace {

constexpr uint64_t kRoot = 200, kTree = 400, kHeap = 600, kNames = 1000;

// An old-style group whose names are all in `heap`, at the given offsets.
void put_group(TestFile& file, const std::string& heap, const std::vector<uint64_t>& names) {
  const uint64_t symbols = kNames + heap.size() + 8;
  file.put(kRoot, u8(1) + u8(0) + u16(1) + u32(1) + u32(24) + zeros(4) + u16(0x11) + u16(16) +
                      zeros(4) + u64(kTree) + u64(kHeap));
  file.put(kTree, "TREE" + u8(0) + u8(0) + u16(1) + u64(UINT64_MAX) + u64(UINT64_MAX) + u64(0) +
                      u64(symbols) + u64(0));
  file.put(kHeap, "HEAP" + zeros(4) + u64(heap.size()) + u64(0) + u64(kNames));
  file.put(kNames, heap);
  std::string entries;
  for (const uint64_t name : names) entries += u64(name) + u64(kRoot) + zeros(24);
  file.put(symbols, "SNOD" + u8(1) + u8(0) + u16(names.size()) + entries);
}

TEST(Hdf5Groups, have_the_names_in_their_heap) {
  TestFile made;
  put_group(made, std::string("\0b\0ab\0", 6), {3, 1});
  const Hdf5File file = made.open();
  const std::vector<Hdf5Link> links = hdf5_links(file, Hdf5Object::read(file, kRoot));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].name, "ab");
  EXPECT_EQ(links[1].name, "b");
}

// 60 KB of letters are 60,000 names, each a suffix of the previous one: 1.8 GB.
TEST(Hdf5Groups, with_overlapping_names_stay_within_the_budget) {
  TestFile made;
  std::vector<uint64_t> names(60'000);
  for (size_t i = 0; i < names.size(); ++i) names[i] = i;
  put_group(made, std::string(names.size(), 'a') + '\0', names);
  Hdf5File file = made.open();
  OpenBudget budget("file.h5", 0);
  file.charge_to(&budget);
  const std::string why = refusal([&] { hdf5_links(file, Hdf5Object::read(file, kRoot)); });
  EXPECT_TRUE(why.starts_with("HR0499: the names of a group would take ")) << why;
}

}  // namespace
}  // namespace headrace::hdf5_test
