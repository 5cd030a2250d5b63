// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/row_index/indexed_source.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "headrace/codecs/image/jpeg/jpeg_test_images.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/row_index/build_row_index.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

// A folder of twelve pictures, the last one progressive, and a cache of its own.
class Photos {
 public:
  Photos() {
    setenv("HEADRACE_CACHE", (folder_ / "cache").c_str(), 1);
    PathColumn files;
    for (int i = 0; i < kCount; ++i) files.paths.push_back(put(i, i));
    source = records({{.name = "image", .values = std::move(files)}});
  }
  static constexpr int kCount = 12;

  std::string put(int place, int picture) {
    jpeg_test::FileSpec spec{.width = 90 + picture, .height = 120};
    spec.progressive = picture == kCount - 1;
    const jpeg_test::Bytes bytes = jpeg_test::encode(spec);
    return folder_.write("data/" + std::to_string(100 + place) + ".jpg",
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::string operator/(std::string_view name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;

 public:
  SourcePtr source;
};

RecordData read(const Source& source, int64_t index) {
  RecordData out;
  source.read({&index, 1}, {true}, {&out, 1});
  EXPECT_TRUE(out.result);
  return out;
}

Bytes known(const Source& source, int64_t index) {
  const RecordData record = read(source, index);
  const auto span = record.fields[0].row_index.known;
  return {span.begin(), span.end()};
}

// The codec's own result for the record's picture.
Bytes rows_of(const Source& source, int64_t index) {
  const RecordData record = read(source, index);
  const auto rows = codec_of(record.fields[0].bytes)->make()->row_index(record.fields[0].bytes);
  return rows ? *rows : Bytes();
}

TEST(IndexedSource, GivesEachImageTheRowsOfItsBytes) {
  Photos photos;
  const BuiltRowIndex built = build_row_index(photos.source, "", 2, {});
  EXPECT_EQ(built.pictures, Photos::kCount);
  EXPECT_EQ(built.indexed, Photos::kCount - 1);
  const WithRowIndex with = with_row_index(photos.source, RowIndexUse::kUse, "");
  ASSERT_TRUE(with.index);
  for (int64_t i = 0; i < Photos::kCount; ++i) {
    EXPECT_EQ(known(*with.source, i), rows_of(*photos.source, i));
    EXPECT_EQ(known(*with.source, i).empty(), i == Photos::kCount - 1);
    EXPECT_EQ(read(*with.source, i).fields[0].row_index.store, nullptr);
  }
  EXPECT_EQ(with.source->fingerprint(), photos.source->fingerprint());
}

TEST(IndexedSource, RemembersLearnedRows) {
  Photos photos;
  const Bytes rows{1, 2, 3, 4};
  {
    const WithRowIndex with = with_row_index(photos.source, RowIndexUse::kAuto, "");
    RecordData record = read(*with.source, 5);
    EXPECT_TRUE(record.fields[0].row_index.known.empty());
    const RowIndexSlot slot = record.fields[0].row_index;
    const RecordData moved = std::move(record);  // as read-ahead does
    ASSERT_TRUE(slot.store);
    slot.store->learned(slot.image, rows);
    with.index->keep();
    EXPECT_EQ(known(*with.source, 5), rows);
    EXPECT_EQ(with.index->counts().learned, 1);
  }
  EXPECT_EQ(known(*with_row_index(photos.source, RowIndexUse::kUse, "").source, 5), rows);
}

TEST(IndexedSource, UsesNoRowsForOtherBytes) {
  Photos photos;
  build_row_index(photos.source, "", 1, {});
  photos.put(2, 3);  // another picture in this place
  const WithRowIndex with = with_row_index(photos.source, RowIndexUse::kUse, "");
  EXPECT_TRUE(known(*with.source, 2).empty());
  EXPECT_EQ(known(*with.source, 3), rows_of(*photos.source, 3));
  EXPECT_EQ(with.index->counts().stale, 1);
  EXPECT_EQ(with.index->counts().used, 1);
}

TEST(IndexedSource, MapsRecordsOfAViewToTheSource) {
  Photos photos;
  build_row_index(subset(photos.source, {4}), "", 1, {});
  const SourcePtr view = subset(photos.source, {7, 2, 7});
  const WithRowIndex with = with_row_index(view, RowIndexUse::kUse, "");
  ASSERT_TRUE(with.index);
  EXPECT_EQ(with.source->fingerprint(), view->fingerprint());
  EXPECT_EQ(known(*with.source, 0), rows_of(*photos.source, 7));
  EXPECT_EQ(known(*with.source, 1), rows_of(*photos.source, 2));
  EXPECT_EQ(read(*with.source, 2).index, 2);
}

TEST(IndexedSource, IsAbsentWithoutAFile) {
  Photos photos;
  EXPECT_EQ(with_row_index(photos.source, RowIndexUse::kUse, "").source, photos.source);
  EXPECT_EQ(with_row_index(photos.source, RowIndexUse::kOff, "").source, photos.source);
  const SourcePtr view = subset(photos.source, {1});
  EXPECT_EQ(with_row_index(view, RowIndexUse::kUse, "").source, view);
  EXPECT_THROW(with_row_index(photos.source, RowIndexUse::kUse, photos / "none"), Exception);
}

TEST(BuildRowIndex, CanceledLeavesNothing) {
  Photos photos;
  const auto cancel = [](int64_t, int64_t) { throw std::runtime_error("enough"); };
  EXPECT_THROW(build_row_index(photos.source, photos / "index", 2, cancel), std::runtime_error);
  EXPECT_FALSE(std::filesystem::exists(photos / "index"));
  EXPECT_NO_THROW(build_row_index(photos.source, photos / "index", 2, {}));
  EXPECT_TRUE(with_row_index(photos.source, RowIndexUse::kUse, photos / "index").index);
}

}  // namespace
}  // namespace headrace
