// SPDX-License-Identifier: Apache-2.0
// Collections of values written by hand: section III.E of the format's specification.
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/formats/hdf5/hdf5_heap.h"
#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace {

constexpr uint64_t kCollection = 200;

std::string object(uint16_t index, const std::string& value) {
  return u16(index) + u16(1) + u32(0) + u64(value.size()) + value +
         zeros((8 - value.size() % 8) % 8);
}

std::string collection(const std::string& objects) {
  return "GCOL" + u8(1) + zeros(3) + u64(16 + objects.size()) + objects;
}

std::string value(TestFile& made, uint32_t index, uint64_t bytes, uint64_t address = kCollection) {
  const Hdf5File file = made.open();
  Buffer out;
  Hdf5Place place;
  const auto read = read_hdf5_value(
      file, {.count = static_cast<uint32_t>(bytes), .index = index, .address = address}, bytes, out,
      place);
  if (!read) return std::string(read.error().code->id) + ": " + read.error().what;
  return text_of(*read);
}

TEST(Hdf5GlobalHeap, a_reference_locates_a_value) {
  TestFile made;
  const Hdf5File file = made.open();
  const Hdf5Reference reference = hdf5_reference(file, span_of(u32(3) + u64(200) + u32(7)));
  EXPECT_EQ(reference.count, 3u);
  EXPECT_EQ(reference.address, 200u);
  EXPECT_EQ(reference.index, 7u);
  EXPECT_FALSE(reference.is_empty());
  EXPECT_TRUE(hdf5_reference(file, span_of(u32(0) + u64(200) + u32(7))).is_empty());
  EXPECT_TRUE(hdf5_reference(file, span_of(u32(3) + u64(0) + u32(7))).is_empty());
  EXPECT_TRUE(hdf5_reference(file, span_of(u32(3) + u64(UINT64_MAX) + u32(7))).is_empty());
}

TEST(Hdf5GlobalHeap, values_are_found_by_their_number) {
  TestFile file;
  file.put(kCollection, collection(object(1, "first") + object(3, "3rd") + object(2, "second")));
  EXPECT_EQ(value(file, 1, 5), "first");
  EXPECT_EQ(value(file, 2, 6), "second");
  EXPECT_EQ(value(file, 3, 3), "3rd");
  EXPECT_EQ(value(file, 3, 2), "3r");
}

TEST(Hdf5GlobalHeap, large_values_are_skipped_or_read_completely) {
  const std::string large(9000, 'x'), other(5000, 'y');
  TestFile file;
  file.put(kCollection, collection(object(1, large) + object(2, other) + object(3, "last")));
  EXPECT_EQ(value(file, 1, large.size()), large);
  EXPECT_EQ(value(file, 2, other.size()), other);
  EXPECT_EQ(value(file, 3, 4), "last");
  // Begins inside the first read, and ends after it.
  TestFile across;
  across.put(kCollection, collection(object(1, "a") + object(2, large)));
  EXPECT_EQ(value(across, 2, large.size()), large);
}

TEST(Hdf5GlobalHeap, values_do_not_depend_on_the_order_of_reading) {
  const std::vector<std::string> values = {std::string(9000, 'x'), "second", std::string(5000, 'y'),
                                           "", "fifth!!!"};
  std::string objects;
  for (size_t i = 0; i < values.size(); ++i) objects += object(uint16_t(i + 1), values[i]);
  const uint64_t second = kCollection + 16 + objects.size();
  TestFile made;
  made.put(kCollection, collection(objects) + collection(object(2, "other") + object(1, "last")));
  const Hdf5File file = made.open();
  Hdf5Place place;
  Buffer out;
  const auto expect = [&](uint64_t address, uint32_t index, const std::string& value) {
    const Hdf5Reference reference = {uint32_t(value.size()), index, address};
    const auto read = read_hdf5_value(file, reference, value.size(), out, place);
    ASSERT_TRUE(read) << index << ": " << read.error().what;
    EXPECT_EQ(text_of(*read), value) << index;
  };
  std::vector<uint32_t> order = {1, 2, 3, 4, 5};
  do {
    for (const uint32_t index : order) expect(kCollection, index, values[index - 1]);
    expect(second, 2, "other");
    expect(second, 1, "last");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Hdf5GlobalHeap, damage_after_a_value_is_detected) {
  const auto read_both = [](const std::string& next, uint32_t index, uint64_t bytes) {
    TestFile made;
    made.put(kCollection, collection(object(1, "first") + next));
    const Hdf5File file = made.open();
    Hdf5Place place;
    Buffer out;
    EXPECT_TRUE(read_hdf5_value(file, {5, 1, kCollection}, 5, out, place));
    const auto read =
        read_hdf5_value(file, {uint32_t(bytes), index, kCollection}, bytes, out, place);
    return read ? text_of(*read) : read.error().what;
  };
  EXPECT_EQ(read_both(object(2, "second"), 2, 6), "second");
  EXPECT_EQ(read_both(object(2, "second"), 2, 7), "a value of 6 bytes instead of 7");
  EXPECT_EQ(read_both(object(2, "second"), 3, 6), "value 3 is not in its collection");
  EXPECT_EQ(read_both(object(0, "second"), 0, 6), "value 0 is not in its collection");
  EXPECT_EQ(read_both(u16(2) + zeros(6) + u64(900) + "second..", 2, 6),
            "a value that does not fit into its collection");
}

TEST(Hdf5GlobalHeap, a_missing_value_is_an_error) {
  TestFile file;
  file.put(kCollection, collection(object(1, "first") + object(2, "second")));
  EXPECT_EQ(value(file, 3, 1), "HR0489: value 3 is not in its collection");
  EXPECT_EQ(value(file, 1, 6), "HR0489: a value of 5 bytes instead of 6");
  const std::string size = std::to_string(200 + 16 + 24 + 24);
  EXPECT_EQ(value(file, 1, 100000),
            "HR0489: a value of 100000 bytes is not inside the file of " + size + " bytes");
  EXPECT_EQ(value(file, 1, 5, 260),
            "HR0489: a value of 5 bytes is not inside the file of " + size + " bytes");
  // Free space has the number 0, and ends the collection.
  TestFile free;
  free.put(kCollection, collection(object(1, "first") + object(0, "") + object(2, "second")));
  EXPECT_EQ(value(free, 2, 6), "HR0489: value 2 is not in its collection");
}

TEST(Hdf5GlobalHeap, collections_are_checked) {
  const std::string no_begin = "HR0489: a collection of values that does not begin with GCOL";
  const std::string sound = collection(object(1, "first"));
  const auto with = [&](size_t at, const std::string& bytes, uint32_t index = 1) {
    std::string changed = sound;
    changed.replace(at, bytes.size(), bytes);
    TestFile file;
    file.put(kCollection, changed);
    return value(file, index, 5);
  };
  EXPECT_EQ(with(0, "X"), no_begin);
  EXPECT_EQ(with(4, u8(2)), no_begin);
  EXPECT_EQ(with(8, u64(sound.size() + 1)), no_begin);
  EXPECT_EQ(with(16 + 8, u64(9)), "HR0489: a value that does not fit into its collection");
  EXPECT_EQ(with(16 + 8, u64(UINT64_MAX)), "HR0489: a value that does not fit into its collection");
  // The size of the previous value makes this one end past the collection.
  EXPECT_EQ(with(8, u64(16 + 16 + 5), 2), "HR0489: value 2 is not in its collection");
}

}  // namespace
}  // namespace headrace::hdf5_test
