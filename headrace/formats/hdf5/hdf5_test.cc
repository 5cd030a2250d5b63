// SPDX-License-Identifier: Apache-2.0
// Values are written by tests/hdf5_seeds.py through h5py; tests/test_hdf5.py compares with h5py
// itself.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "headrace/formats/format.h"
#include "headrace/formats/hdf5/hdf5_dataset.h"
#include "headrace/formats/hdf5/hdf5_test_damage.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;
using Fields = std::vector<std::string>;

std::string_view text_of(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class Hdf5 : public testing::TestWithParam<std::string_view> {
 protected:
  std::string write(std::span<const uint8_t> bytes) const {
    return folder_.write("file.h5", text_of(bytes));
  }
  static SourcePtr open(const std::string& path, const ParamValue& fields = {}) {
    return open_source(path, {{"fields", fields}});
  }
  // The only field of a record.
  template <class Number>
  static std::vector<Number> numbers(const Source& source, int64_t index) {
    RecordData record;
    source.read({&index, 1}, {true}, {&record, 1});
    EXPECT_TRUE(record.result);
    std::vector<Number> out(record.fields[0].bytes.size() / sizeof(Number));
    std::memcpy(out.data(), record.fields[0].bytes.data(), out.size() * sizeof(Number));
    return out;
  }
  static std::string text(const Source& source, int64_t index) {
    RecordData record;
    source.read({&index, 1}, {true}, {&record, 1});
    EXPECT_TRUE(record.result);
    return std::string(text_of(record.fields[0].bytes));
  }
  // Opens and reads everything: it must terminate, with values or with errors.
  static void use(const std::string& path) {
    for (const char* name : {"", "packed", "grows", "everywhere", "text", "bytes", "soft"}) {
      try {
        const SourcePtr source =
            open_source(path, {{"format", std::string("hdf5")},
                               {"fields", *name ? ParamValue(Fields{name}) : ParamValue{}}});
        const std::vector<bool> all(source->schema().size(), true);
        for (int64_t i = 0; i < std::min<int64_t>(source->size(), 8); ++i) {
          RecordData record;
          record.max_bytes = size_t{1} << 24;
          source->read({&i, 1}, all, {&record, 1});
          if (!record.result) {
            EXPECT_FALSE(record.result.error().what.empty());
          }
        }
      } catch (const Exception& exception) {
        EXPECT_FALSE(exception.error().what.empty());
      }
    }
  }
  TemporaryFolder folder_;
};

TEST_P(Hdf5, EveryKindOfDatasetIsReadFromOldAndNewFiles) {
  const std::string path = write(hdf5_test_file(GetParam()));
  const SourcePtr packed = open(path, Fields{"packed"});
  ASSERT_EQ(packed->size(), 6);
  for (int i = 0; i < 6; ++i) {
    std::vector<int32_t> expected(10);
    std::iota(expected.begin(), expected.end(), 10 * i);
    EXPECT_EQ(numbers<int32_t>(*packed, i), expected);
  }
  EXPECT_EQ(numbers<float>(*open(path, Fields{"grows"}), 4), (std::vector<float>{8, 9}));
  EXPECT_EQ(numbers<uint8_t>(*open(path, Fields{"lzf"}), 2), Bytes(4));
  EXPECT_EQ(numbers<uint8_t>(*open(path, Fields{"bytes"}), 3), (Bytes{0, 1, 2}));
  const SourcePtr holes = open(path, Fields{"soft"});
  EXPECT_EQ(numbers<int64_t>(*holes, 1), (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(numbers<int64_t>(*holes, 5), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(text(*open(path, Fields{"text"}), 3),
            "d\xC3\xA9"
            "f");
  EXPECT_EQ(text(*open(path, Fields{"fixed"}), 1), "c");
}

TEST_P(Hdf5, FieldsAreNamedByContent) {
  const SourcePtr source = open(write(hdf5_test_file(GetParam())));
  std::vector<std::string> names;
  for (const Field& field : source->schema()) names.push_back(field.name);
  for (const char* name : {"image", "label", "packed", "text", "holes", "fixed"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
  const auto image = std::find(names.begin(), names.end(), "image") - names.begin();
  EXPECT_EQ(source->schema()[image].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[image].shape, (Shape{1, 2, 3}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST_P(Hdf5, TruncatedAnywhereIsAnError) {
  const Bytes whole = hdf5_test_file(GetParam());
  for (size_t i = 0; i < 64; ++i) {
    const std::string path = write(std::span(whole).first(whole.size() * i / 64));
    EXPECT_THROW(open_source(path, {{"format", std::string("hdf5")}}), Exception) << i;
  }
}

TEST_P(Hdf5, FlippedBitsNeverCrash) {
  const Bytes whole = hdf5_test_file(GetParam());
  const std::vector<Hdf5Checked> parts = hdf5_checked_parts(whole);
  uint32_t random = 1;
  for (int i = 0; i < 600; ++i) {
    Bytes bytes = whole;
    for (int change = 0; change < 1 + i % 3; ++change) {
      random = random * 1664525 + 1013904223;
      bytes[random % bytes.size()] ^= static_cast<uint8_t>(1 << (random >> 28) % 8);
    }
    if (i % 2) correct_hdf5_checksums(parts, bytes);
    use(write(bytes));
  }
}

TEST_P(Hdf5, HugeLengthsNeverCrash) {
  const Bytes whole = hdf5_test_file(GetParam());
  const std::vector<Hdf5Checked> parts = hdf5_checked_parts(whole);
  for (const uint64_t length : {uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 31}) {
    for (size_t at = 0; at + 8 <= whole.size(); at += 8 + at / 16) {
      Bytes bytes = whole;
      std::memcpy(bytes.data() + at, &length, sizeof length);
      correct_hdf5_checksums(parts, bytes);
      use(write(bytes));
    }
  }
}

TEST_P(Hdf5, FingerprintsDistinguishFiles) {
  const Bytes whole = hdf5_test_file(GetParam());
  const uint64_t print = open(write(whole))->fingerprint();
  EXPECT_EQ(open(write(whole))->fingerprint(), print);
  EXPECT_NE(open(write(whole), Fields{"packed"})->fingerprint(), print);
}

INSTANTIATE_TEST_SUITE_P(OldAndYoung, Hdf5, testing::Values(kOldHdf5File, kYoungHdf5File));

TEST(Hdf5Checksums, EqualTheirPublishedValues) {
  // From the comments of Bob Jenkins' lookup3.c.
  const std::string_view text = "Four score and seven years ago";
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  EXPECT_EQ(hdf5_metadata_checksum(bytes), 0x17770551);
  EXPECT_EQ(hdf5_metadata_checksum({}), 0xDEADBEEF);
}

Hdf5Filter filter(uint16_t id) {
  Hdf5Filter out;
  out.id = id;
  return out;
}

TEST(Hdf5Filters, DataTooLargeForItsChunkIsAnError) {
  // lzf: one byte, then a copy of 264 bytes from it.
  const Bytes bomb = {0, 'a', 0xE0, 255, 0};
  Bytes out(100);
  EXPECT_EQ(undo_hdf5_filters({filter(Hdf5Filter::kLzf)}, 0, 1, bomb, out),
            "a chunk's lzf stream is damaged");
  const Bytes short_one = {0, 'a', 0x20, 0};
  EXPECT_EQ(undo_hdf5_filters({filter(Hdf5Filter::kLzf)}, 0, 1, short_one, out),
            "a chunk has 4 bytes after its filters, but 100 according to its shape");
  out.resize(4);
  EXPECT_EQ(undo_hdf5_filters({filter(Hdf5Filter::kLzf)}, 0, 1, short_one, out), "");
  EXPECT_EQ(text_of(out), "aaaa");
  EXPECT_EQ(undo_hdf5_filters({filter(Hdf5Filter::kDeflate)}, 0, 1, bomb, out),
            "a chunk's deflate stream is damaged");
  // Skipped by the mask: the chunk is unchanged.
  EXPECT_EQ(undo_hdf5_filters({filter(Hdf5Filter::kDeflate)}, 1, 1, short_one, out), "");
  EXPECT_EQ(out, short_one);
}

}  // namespace
}  // namespace headrace
