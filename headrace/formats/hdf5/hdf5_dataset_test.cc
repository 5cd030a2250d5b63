// SPDX-License-Identifier: Apache-2.0
// Datasets of a few bytes written by hand, and errors before a row is read.
#include "headrace/formats/hdf5/hdf5_dataset.h"

#include <gtest/gtest.h>

#include "headrace/formats/hdf5/hdf5_test_structures.h"

namespace headrace::hdf5_test {
namespace hdf5_dataset_test {

using Type = Hdf5MessageType;

constexpr uint64_t kObject = 200, kData = 2000, kNone = UINT64_MAX;

std::string message(Type type, const std::string& body) {
  return u16(static_cast<uint16_t>(type)) + u16(body.size()) + zeros(4) + body;
}
std::string space(const std::vector<uint64_t>& sizes) {
  std::string body = u8(2) + u8(sizes.size()) + u8(0) + u8(1);
  for (const uint64_t size : sizes) body += u64(size);
  return message(Type::kDataspace, body);
}
// Unsigned one-byte integers.
const std::string kBytes = message(Type::kDatatype, u8(0x10) + zeros(3) + u32(1) + u16(0) + u16(8));
std::string contiguous(uint64_t address, uint64_t bytes) {
  return message(Type::kLayout, u8(3) + u8(1) + u64(address) + u64(bytes));
}
std::string compact(const std::string& data) {
  return message(Type::kLayout, u8(3) + u8(0) + u16(data.size()) + data);
}
// Chunks of one-byte elements, in an empty B-tree.
std::string chunked(const std::vector<uint32_t>& chunk, uint32_t element_bytes = 1) {
  std::string body = u8(3) + u8(2) + u8(chunk.size() + 1) + u64(kNone);
  for (const uint32_t size : chunk) body += u32(size);
  return message(Type::kLayout, body + u32(element_bytes));
}
// A single chunk of rows; partial chunks at the end are not filtered.
std::string single(uint32_t rows, uint32_t columns, uint64_t stored_bytes) {
  return message(Type::kLayout, u8(4) + u8(2) + u8(3) + u8(3) + u8(4) + u32(rows) + u32(columns) +
                                    u32(1) + u8(1) + u64(stored_bytes) + u32(0) + u64(kData));
}
std::string filter(uint16_t id, const std::string& name = {}) {
  return message(Type::kFilters, u8(2) + u8(1) + u16(id) + (id < 256 ? "" : u16(name.size())) +
                                     u16(0) + u16(0) + name);
}
std::string fill(uint8_t value) {
  return message(Type::kFillValue, u8(3) + u8(0x20) + u32(1) + u8(value));
}

class Hdf5DatasetTest : public testing::Test {
 protected:
  void file_with(const std::string& messages) {
    made_ = std::make_unique<TestFile>();
    made_->put(kObject,
               u8(1) + u8(0) + u16(1) + u32(1) + u32(messages.size()) + zeros(4) + messages);
  }
  // Rows [first, first + count) as text, or the error.
  std::string rows(const std::string& messages, const std::string& data = {}, uint64_t first = 0,
                   uint64_t count = 0) {
    file_with(messages);
    made_->put(kData, data.empty() ? zeros(64) : data);
    const Hdf5File file = made_->open();
    Hdf5ChunkCache cache(1000);
    std::string out;
    const std::string why = refusal([&] {
      const Hdf5Dataset dataset(file, hdf5_outline(file, "/x", kObject), cache);
      offset_ = dataset.offset_of(first);
      std::vector<uint8_t> bytes(count * dataset.row_bytes());
      const Result<void> read = dataset.read(first, count, bytes);
      if (!read) throw Exception(Error(read.error()));
      out = text_of(bytes);
    });
    return why.empty() ? out : why;
  }
  std::unique_ptr<TestFile> made_;
  int64_t offset_ = 0;
};

TEST_F(Hdf5DatasetTest, rows_of_every_layout_are_read) {
  EXPECT_EQ(rows(space({3, 2}) + kBytes + contiguous(kData, 6), "abcdef", 1, 2), "cdef");
  EXPECT_EQ(offset_, int64_t(kData) + 2);
  EXPECT_EQ(rows(space({3, 2}) + kBytes + compact("abcdef"), {}, 1, 1), "cd");
  EXPECT_EQ(offset_, -1);
  EXPECT_EQ(rows(space({3, 2}) + kBytes + contiguous(kNone, 0) + fill('f'), {}, 0, 2), "ffff");
  EXPECT_EQ(rows(space({3, 2}) + kBytes + chunked({2, 2}) + fill('f'), {}, 1, 2), "ffff");
  EXPECT_EQ(offset_, -1);
  EXPECT_EQ(rows(space({3, 2}) + kBytes + chunked({2, 2}), {}, 1, 1), zeros(2));
}

TEST_F(Hdf5DatasetTest, chunks_beyond_the_end_may_be_stored_unfiltered) {
  const std::string deflate = filter(Hdf5Filter::kDeflate);
  // With rows as wide as the chunk, and with narrower ones.
  EXPECT_EQ(rows(space({3, 2}) + kBytes + single(4, 2, 8) + deflate, "abcdefgh", 1, 2), "cdef");
  EXPECT_EQ(offset_, int64_t(kData));
  EXPECT_EQ(rows(space({4, 2}) + kBytes + single(4, 3, 12) + deflate, "ab-cd-ef-gh-", 1, 2),
            "cdef");
  EXPECT_EQ(rows(space({3, 2}) + kBytes + single(4, 2, 5) + deflate, "abcdefgh", 1, 2),
            "HR0489: a chunk of 5 bytes is too small");
  // A chunk that ends with its dataset is filtered, and this one is not a valid stream.
  EXPECT_EQ(rows(space({4, 2}) + kBytes + single(4, 2, 8) + deflate, "abcdefgh", 1, 2),
            "HR0489: a chunk's deflate stream is damaged");
}

TEST_F(Hdf5DatasetTest, datasets_without_rows_are_rejected) {
  const std::string row = contiguous(kData, 6);
  EXPECT_EQ(rows(space({3, 2}) + kBytes), "HR0489: an object that is not a dataset");
  EXPECT_EQ(rows(kBytes + row), "HR0489: a dataset without a shape");
  const std::string one = "HR0490: a scalar dataset, without rows";
  EXPECT_EQ(rows(space({}) + kBytes + row), one);
  EXPECT_EQ(rows(message(Type::kDataspace, u8(2) + u8(0) + u8(0) + u8(2)) + kBytes + row), one);
  EXPECT_EQ(rows(space({3, 0}) + kBytes + row), "HR0490: records without any element");
  const std::string outside = message(Type::kExternalFiles, zeros(8));
  EXPECT_EQ(rows(space({3, 2}) + kBytes + row + outside),
            "HR0494: its data is stored in other files");
  EXPECT_EQ(rows(space({3, 2}) + kBytes + message(Type::kLayout, u8(4) + u8(3))),
            "HR0494: a virtual dataset");
}

TEST_F(Hdf5DatasetTest, sizes_without_data_are_rejected) {
  const std::string row = contiguous(kNone, 0);
  const std::string two_gib = "HR0493: a record has more than 2 GiB";
  EXPECT_EQ(rows(space({1, (uint64_t{2} << 30) + 1}) + kBytes + row), two_gib);
  EXPECT_EQ(rows(space({1, 1 << 20, 1 << 20}) + kBytes + row), two_gib);
  EXPECT_EQ(rows(space({1, kNone}) + kBytes + row), two_gib);
  const std::string rows_of = " rows of 4 bytes in a file of 2,064 bytes";
  EXPECT_EQ(rows(space({kNone, 4}) + kBytes + row),
            "HR0493: a dataset of 18446744073709551615" + rows_of);
  EXPECT_EQ(rows(space({1 << 25, 4}) + kBytes + row), "HR0493: a dataset of 33554432" + rows_of);
  EXPECT_EQ(rows(space({1 << 24, 4}) + kBytes + row), "");  // 64 MiB: plausible
}

TEST_F(Hdf5DatasetTest, data_must_be_inside_the_file) {
  EXPECT_EQ(rows(space({3, 2}) + kBytes + compact("abcde")),
            "HR0489: a dataset of 6 bytes stores 5");
  const std::string outside = "HR0489: a dataset of 6 bytes is not inside the file of 2064 bytes";
  EXPECT_EQ(rows(space({3, 2}) + kBytes + contiguous(2059, 6)), outside);
  EXPECT_EQ(rows(space({3, 2}) + kBytes + contiguous(kData, 5)), outside);
}

TEST_F(Hdf5DatasetTest, chunks_must_fit_their_dataset) {
  const std::string begin = space({3, 2}) + kBytes;
  const std::string other = "HR0489: chunks whose number of dimensions differs from the dataset's";
  EXPECT_EQ(rows(begin + chunked({2})), other);
  EXPECT_EQ(rows(begin + chunked({2, 2}, 4)), other);
  const std::string large = "HR0493: chunks of more than 256 MiB";
  EXPECT_EQ(rows(begin + chunked({1 << 20, 257})), large);
  EXPECT_EQ(rows(space({3, 2, 2}) + kBytes + chunked({UINT32_MAX, UINT32_MAX, UINT32_MAX})), large);
  EXPECT_EQ(rows(begin + chunked({2, 2}) + filter(32001)),
            "HR0490: chunks are compressed with blosc (filter 32001)");
  EXPECT_EQ(rows(begin + chunked({2, 2}) + filter(999, "mine\x01")),
            "HR0490: chunks are compressed with mine (filter 999)");
}

TEST_F(Hdf5DatasetTest, an_error_names_the_dataset) {
  for (const std::string& messages : {kBytes, space({3, 2}) + kBytes}) {
    file_with(messages);
    const Hdf5File file = made_->open();
    Hdf5ChunkCache cache(1000);
    try {
      const Hdf5Dataset dataset(file, hdf5_outline(file, "/deep/x", kObject), cache);
      ADD_FAILURE() << "no exception";
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().where.member, "/deep/x");
    }
  }
}

}  // namespace hdf5_dataset_test
}  // namespace headrace::hdf5_test
