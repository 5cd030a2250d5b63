// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/pack/pack_output.h"
#include "headrace/formats/pack/pack_test_files.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace pack_unpack_test {

namespace fs = std::filesystem;

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return std::string(exception.error().code->id);
  }
  return "";
}

PackOptions small_pages() {
  PackOptions options;
  options.page_bytes = 8192;
  options.threads = 2;
  return options;
}

// A pack of one image field with these keys, as a malicious program would write it.
void write_pack(const std::string& path, const std::vector<std::string>& keys) {
  PackHeader header;
  header.records = header.dataset_records = keys.size();
  header.keys_are_paths = true;
  header.schema.push_back(
      {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true});
  PackWriter writer(path, header);
  for (const std::string& key : keys) {
    PackedRecord record;
    record.key = key;
    PackedValue& value = record.values.emplace_back();
    value.bytes = {key.begin(), key.end()};
    value.facts.stored_bytes = value.facts.original_bytes = static_cast<uint32_t>(key.size());
    value.facts.stored_sum = value.facts.original_sum = crc32c(value.bytes);
    writer.add(record);
  }
  writer.finish();
}

PackedValue blob_of(const std::string& text) {
  PackedValue value;
  value.bytes = {text.begin(), text.end()};
  value.facts.stored_bytes = value.facts.original_bytes = static_cast<uint32_t>(text.size());
  value.facts.stored_sum = value.facts.original_sum = crc32c(value.bytes);
  return value;
}

// A pack of two records with every type of field that becomes a file or an array. `change` may
// modify the second.
void write_fields(const std::string& path, bool keys_are_paths,
                  const std::function<void(PackedRecord&)>& change = {}) {
  PackHeader header;
  header.records = header.dataset_records = 2;
  header.keys_are_paths = keys_are_paths;
  header.schema = {
      {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true},
      {.name = "mask", .kind = FieldKind::kMask, .shape = {-1, -1, -1}, .encoded = true},
      {.name = "raw", .kind = FieldKind::kBytes},
      {.name = "boxes", .dtype = DType::kUInt8, .shape = {-1, 2}},
      {.name = "wide", .dtype = DType::kUInt8, .shape = {100}},
      {.name = "text", .kind = FieldKind::kText}};
  PackWriter writer(path, header);
  for (int i = 0; i < 2; ++i) {
    const std::string mark = std::to_string(i);
    const int64_t shape[2] = {1, 2};
    PackedRecord record;
    record.key = "a.b/" + mark + ".jpg";
    for (const std::string& value :
         {"\xFF\xD8\xFF" + mark, "\x89PNG\r\n\x1a\n" + mark, mark,
          mark + "x" + std::string(reinterpret_cast<const char*>(shape), sizeof shape),
          std::string(100, mark[0]), "text " + mark}) {
      record.values.push_back(blob_of(value));
    }
    if (i == 1 && change) change(record);
    writer.add(record);
  }
  writer.finish();
}

// The rows of a .npy, after its header of 128 bytes.
std::string rows_of(const std::string& npy) { return npy.substr(npy.find('\n') + 1); }

TEST(Unpack, WritesEveryFieldAsAFileOrAnArray) {
  const TemporaryFolder place;
  write_fields(place / "x", true);
  EXPECT_TRUE(unpack(place / "x", place / "out").damaged.empty());
  const auto files = files_below(place / "out");
  EXPECT_EQ(files.size(), 2u * 4 + 2);
  EXPECT_EQ(files.at("a.b/1.jpg"),
            "\xFF\xD8\xFF"
            "1");
  EXPECT_EQ(files.at("mask/a.b/1.png"), "\x89PNG\r\n\x1a\n1");
  EXPECT_EQ(files.at("raw/a.b/1.bin"), "1");
  EXPECT_EQ(rows_of(files.at("boxes/a.b/1.npy")), "1x");
  EXPECT_NE(files.at("boxes/a.b/1.npy").find("'shape': (1, 2, )"), std::string::npos);
  EXPECT_EQ(rows_of(files.at("wide.npy")), std::string(100, '0') + std::string(100, '1'));
  EXPECT_EQ(files.at("labels.jsonl"),
            "{\"key\": \"a.b/0.jpg\", \"text\": \"text 0\"}\n"
            "{\"key\": \"a.b/1.jpg\", \"text\": \"text 1\"}\n");
}

TEST(Unpack, AddsASuffixToKeysThatAreNotPaths) {
  const TemporaryFolder place;
  write_fields(place / "x", false);
  unpack(place / "x", place / "out");
  const auto files = files_below(place / "out");
  EXPECT_TRUE(files.contains("a.b/1.jpg.jpg"));
  EXPECT_TRUE(files.contains("mask/a.b/1.jpg.png"));
}

TEST(Unpack, NeverWritesBytesThatWereNotPacked) {
  const TemporaryFolder place;
  const auto damaged = [&](size_t field, const std::function<void(PackedValue&)>& change) {
    std::filesystem::remove_all(place / "out");
    std::filesystem::remove(place / "x");
    write_fields(place / "x", true, [&](PackedRecord& record) { change(record.values[field]); });
    const UnpackReport report = unpack(place / "x", place / "out");
    EXPECT_EQ(report.damaged.size(), 1u);
    if (report.damaged.size() != 1) return std::string();
    EXPECT_EQ(report.damaged[0].record, 1);
    EXPECT_EQ(report.damaged[0].code, "HR0452");
    return report.damaged[0].what;
  };
  const auto other_sum = [](PackedValue& value) { ++value.facts.original_sum; };
  const auto other_size = [](PackedValue& value) { ++value.facts.original_bytes; };
  const std::string differ = ": the bytes differ from those that were packed";
  EXPECT_EQ(damaged(0, other_sum), "field 'image'" + differ);
  EXPECT_FALSE(files_below(place / "out").contains("a.b/1.jpg"));
  EXPECT_TRUE(files_below(place / "out").contains("mask/a.b/1.png"));
  EXPECT_EQ(damaged(1, other_size), "field 'mask'" + differ);
  EXPECT_EQ(damaged(4, other_sum), "field 'wide'" + differ);
  EXPECT_EQ(rows_of(content_of(place / "out/wide.npy")),
            std::string(100, '0') + std::string(100, '\0'));
  EXPECT_EQ(damaged(5, other_sum), "field 'text'" + differ);
  EXPECT_EQ(content_of(place / "out/labels.jsonl"),
            "{\"key\": \"a.b/0.jpg\", \"text\": \"text 0\"}\n");
  const std::string no_jpeg = damaged(
      0, [](PackedValue& value) { value.facts.form = static_cast<uint8_t>(PackForm::kFast); });
  EXPECT_TRUE(no_jpeg.starts_with("field 'image': ")) << no_jpeg;
}

TEST(Unpack, RestoresATensorTooShortForItsShape) {
  const TemporaryFolder place;
  write_fields(place / "x", true, [](PackedRecord& record) { record.values[3] = blob_of("odd"); });
  unpack(place / "x", place / "out");
  EXPECT_EQ(content_of(place / "out/boxes/a.b/1.npy"), "odd");
}

TEST(Unpack, RestoresTheTreeByteForByte) {
  const TemporaryFolder place;
  write_pictures(place, "data", 30);
  pack({open_source(place / "data")}, place / "x", small_pages());
  const UnpackReport report = unpack(place / "x", place / "deep/out");
  EXPECT_EQ(report.files, 30);
  EXPECT_EQ(report.manifest, "");
  EXPECT_TRUE(report.damaged.empty());
  EXPECT_EQ(files_below(place / "deep/out"), files_below(place / "data"));
}

TEST(Unpack, NeedsNoManifestIfTheFoldersSuffice) {
  const TemporaryFolder place;
  write_pictures(place, "data", 12);
  const SourcePtr folder = open_source(place / "data");
  const auto manifest_of = [&](const SourcePtr& source) {
    static int number = 0;
    const std::string name = place / ("x" + std::to_string(number++));
    pack({source}, name, small_pages());
    unpack(name, name + ".out");
    return content_of(name + ".out/labels.jsonl");
  };
  EXPECT_EQ(manifest_of(folder), "");
  EXPECT_EQ(manifest_of(open_source(place / "data/ant")), "");
  EXPECT_EQ(manifest_of(subset(folder, {5, 0})),
            "{\"key\": \"bee/10.jpg\", \"label\": 1, \"class\": \"bee\"}\n"
            "{\"key\": \"ant/0.jpg\", \"label\": 0, \"class\": \"ant\"}\n");
  const std::vector<std::string> names = {"cow", "bee", "ant"};
  EXPECT_NE(manifest_of(open_source(place / "data", {{"classes", names}})), "");
}

TEST(Unpack, WritesLabelsTextAndArraysOfOtherSources) {
  const TemporaryFolder place;
  write_pictures(place, "data", 3);
  PathColumn paths{{place / "data/ant/0.jpg", place / "data/bee/1.jpg"}};
  TextColumn captions{{"a \"cat\"", std::string("\xFF\n", 2)}};
  const std::vector<float> points = {1, 2, 3, 4};
  std::vector<Column> columns;
  columns.push_back({.name = "image", .values = paths});
  columns.push_back({.name = "caption", .values = captions});
  columns.push_back(
      {.name = "point",
       .values =
           ArrayColumn{.data = points.data(), .dtype = DType::kFloat32, .count = 2, .shape = {2}}});
  pack({records(std::move(columns))}, place / "x", small_pages());
  unpack(place / "x", place / "out");
  EXPECT_EQ(content_of(place / "out/labels.jsonl"),
            "{\"key\": \"ant/0.jpg\", \"caption\": \"a \\\"cat\\\"\"}\n"
            "{\"key\": \"bee/1.jpg\", \"caption\": \"\\udcff\\n\"}\n");
  EXPECT_EQ(content_of(place / "out/ant/0.jpg"), content_of(place / "data/ant/0.jpg"));
  const std::string array = content_of(place / "out/point.npy");
  ASSERT_EQ(array.size() % 64, 16u);
  EXPECT_EQ(array.substr(0, 6), "\x93NUMPY");
  EXPECT_NE(array.find("'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, )"), array.npos);
  EXPECT_EQ(std::memcmp(array.data() + array.size() - 16, points.data(), 16), 0);
}

TEST(Unpack, NeverWritesOutsideItsFolder) {
  const TemporaryFolder place;
  fs::create_directories(place / "safe");
  for (const std::string key :
       {"../x", "/tmp/x", "a/../../x", "a//x", "./x", "a/", "..", ".", "", "a/./x"}) {
    write_pack(place / "bad", {"good.jpg", key});
    EXPECT_EQ(error_of([&] { unpack(place / "bad", place / "safe/out"); }), "HR0450") << key;
    EXPECT_TRUE(files_below(place / "safe").empty()) << key;
    fs::remove(place / "bad");
  }
  write_pack(place / "bad", {std::string("a\0b", 3)});
  EXPECT_EQ(error_of([&] { unpack(place / "bad", place / "safe/out"); }), "HR0450");
}

TEST(Unpack, DoesNotFollowALinkOutOfItsFolder) {
  const TemporaryFolder place;
  fs::create_directories(place / "out");
  fs::create_directories(place / "elsewhere");
  fs::create_directory_symlink(place / "elsewhere", place / "out/a");
  write_pack(place / "pack", {"a/x.jpg"});
  EXPECT_EQ(error_of([&] { unpack(place / "pack", place / "out"); }), "HR0450");
  EXPECT_TRUE(files_below(place / "elsewhere").empty());
}

TEST(Unpack, ReplacesDifferentFilesOnlyOnRequest) {
  const TemporaryFolder place;
  write_pack(place / "pack", {"a.jpg", "b.jpg"});
  place.write("out/a.jpg", "other");
  EXPECT_EQ(error_of([&] { unpack(place / "pack", place / "out"); }), "HR0451");
  EXPECT_EQ(content_of(place / "out/a.jpg"), "other");
  UnpackOptions options;
  options.overwrite = true;
  unpack(place / "pack", place / "out", options);
  EXPECT_EQ(content_of(place / "out/a.jpg"), "a.jpg");
}

TEST(Unpack, ResumesWhereItWasInterrupted) {
  const TemporaryFolder place;
  write_pack(place / "pack", {"a.jpg", "b.jpg", "b.jpg"});
  place.write("out/a.jpg", "a.jpg");
  place.write("out/.headrace-unpack-999999999-0123456789abcdef", "of a process that was killed");
  place.write("out/.headrace-unpack-1-0123456789abcdef", "of a process that runs");
  place.write("out/.headrace-unpack-notes", "mine");
  const UnpackReport report = unpack(place / "pack", place / "out");
  EXPECT_EQ(report.files, 1 + 1);  // and the manifest: the same key twice
  EXPECT_EQ(report.present, 2);
  EXPECT_EQ(content_of(place / "out/.headrace-unpack-notes"), "mine");
  EXPECT_EQ(files_below(place / "out").size(), 3u + 2u);
}

TEST(Unpack, ListsDamagedRecordsAndRestoresTheOthers) {
  const TemporaryFolder place;
  write_pack(place / "pack", {"first.jpg", "second.jpg", "third.jpg"});
  // The name occurs in the page's table, in the blob, and in the index, in this order.
  std::string damaged = content_of(place / "pack");
  damaged[damaged.find("second.jpg", damaged.find("second.jpg") + 1)] ^= 1;
  place.write("damaged", damaged);
  const UnpackReport report = unpack(place / "damaged", place / "out");
  ASSERT_EQ(report.damaged.size(), 1u);
  EXPECT_EQ(report.damaged[0].code, "HR0444");
  EXPECT_EQ(report.damaged[0].record, 1);
  EXPECT_EQ(report.damaged[0].key, "second.jpg");
  const auto files = files_below(place / "out");
  EXPECT_TRUE(files.contains("first.jpg") && files.contains("third.jpg"));
  EXPECT_FALSE(files.contains("second.jpg"));
}

// Otherwise a small pack could produce an array that fills the disk.
TEST(Unpack, RejectsArraysWhoseRowsDoNotMatchTheirShape) {
  const TemporaryFolder place;
  PackHeader header;
  header.records = header.dataset_records = 1;
  header.schema.push_back({.name = "x", .dtype = DType::kFloat64, .shape = {1 << 20, 1 << 20}});
  {
    PackWriter writer(place / "pack", header);
    PackedRecord record;
    record.key = "0";
    PackedValue& value = record.values.emplace_back();
    value.bytes = {1, 2, 3};
    value.facts.stored_bytes = value.facts.original_bytes = 3;
    value.facts.stored_sum = value.facts.original_sum = crc32c(value.bytes);
    writer.add(record);
    writer.finish();
  }
  EXPECT_EQ(error_of([&] { unpack(place / "pack", place / "out"); }), "HR0452");
  EXPECT_TRUE(files_below(place / "out").empty());
  RecordData data;
  const int64_t index = 0;
  open_source(place / "pack")->read({&index, 1}, {true}, {&data, 1});
  ASSERT_FALSE(data.result);
  EXPECT_EQ(data.result.error().code->id, "HR0456");
}

}  // namespace pack_unpack_test
}  // namespace headrace
