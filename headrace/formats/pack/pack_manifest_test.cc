// SPDX-License-Identifier: Apache-2.0
// Expected headers are from numpy.lib.format.
#include <gtest/gtest.h>

#include "headrace/formats/pack/pack_output.h"
#include "headrace/formats/pack/pack_test_files.h"
#include "headrace/formats/pack/pack_writer.h"
#include "headrace/storage/crc32c.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

TEST(NpyHeader, NamesTypesAsNumpyDoes) {
  const std::pair<DType, std::string> types[] = {
      {DType::kUInt8, "|u1"},   {DType::kInt8, "|i1"},    {DType::kInt16, "<i2"},
      {DType::kInt32, "<i4"},   {DType::kInt64, "<i8"},   {DType::kUInt16, "<u2"},
      {DType::kUInt32, "<u4"},  {DType::kUInt64, "<u8"},  {DType::kFloat16, "<f2"},
      {DType::kFloat32, "<f4"}, {DType::kFloat64, "<f8"}, {DType::kBool, "|b1"},
      {DType::kBFloat16, "|V2"}};  // unknown to NumPy: two bytes
  for (const auto& [dtype, name] : types) {
    const std::string header = text_of(npy_header(dtype, {3, 20}));
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\0", 8));
    EXPECT_EQ(static_cast<uint8_t>(header[8]) + 256 * static_cast<uint8_t>(header[9]),
              header.size() - 10);
    EXPECT_EQ(header.substr(10, header.find('}') - 9),
              "{'descr': '" + name + "', 'fortran_order': False, 'shape': (3, 20, ), }");
    EXPECT_EQ(header.back(), '\n');
  }
  EXPECT_NE(text_of(npy_header(DType::kInt64, {})).find("'shape': (), }"), std::string::npos);
}

struct Named {
  std::string key;
  int64_t label = 0;
};

// Whether folders alone represent a pack of pictures with these keys and labels.
bool suffice(const std::vector<Named>& records, std::vector<std::string> classes,
             const std::function<void(PackHeader&)>& change = {}) {
  const TemporaryFolder place;
  PackHeader header;
  header.records = header.dataset_records = records.size();
  header.keys_are_paths = true;
  header.schema.push_back(
      {.name = "image", .kind = FieldKind::kImage, .shape = {-1, -1, -1}, .encoded = true});
  header.classes = std::move(classes);
  const bool labeled = !header.classes.empty();
  if (labeled) {
    header.schema.push_back({.name = "label", .kind = FieldKind::kLabel, .dtype = DType::kInt64});
  }
  if (change) change(header);
  PackWriter writer(place / "pack", header);
  for (const Named& named : records) {
    PackedRecord record;
    record.key = named.key;
    PackedValue& picture = record.values.emplace_back();
    picture.bytes = {1, 2, 3};
    picture.facts.stored_bytes = picture.facts.original_bytes = 3;
    picture.facts.stored_sum = picture.facts.original_sum = crc32c(picture.bytes);
    if (labeled) {
      const auto* raw = reinterpret_cast<const uint8_t*>(&named.label);
      record.values.emplace_back().bytes.assign(raw, raw + sizeof named.label);
    }
    writer.add(record);
  }
  writer.finish();
  return folders_suffice(open_pack(place / "pack", false));
}

TEST(Folders, SufficeIfTheyGiveTheSameRecordsInTheSameOrder) {
  EXPECT_TRUE(suffice({{"ant/1.jpg", 0}, {"ant/2.jpg", 0}, {"bee/1.jpg", 1}}, {"ant", "bee"}));
  EXPECT_TRUE(suffice({{"ant/1.jpg", 0}, {"ant/x/1.jpg", 0}}, {"ant"}));
  EXPECT_TRUE(suffice({{"1.jpg"}, {"2.jpg"}}, {}));
}

TEST(Folders, DoNotSufficeOtherwise) {
  const std::vector<std::string> two = {"ant", "bee"};
  EXPECT_FALSE(suffice({{"bee/1.jpg", 1}, {"ant/1.jpg", 0}}, two)) << "order";
  EXPECT_FALSE(suffice({{"ant/1.jpg", 0}, {"ant/1.jpg", 0}, {"bee/1.jpg", 1}}, two)) << "twice";
  EXPECT_FALSE(suffice({{"ant/1.jpg", 1}, {"bee/1.jpg", 0}}, two)) << "other labels";
  EXPECT_FALSE(suffice({{"ant/1.jpg", 2}, {"bee/1.jpg", 1}}, two)) << "no class";
  EXPECT_FALSE(suffice({{"ant/1.jpg", -1}, {"bee/1.jpg", 1}}, two)) << "no label";
  EXPECT_FALSE(suffice({{"ant/1.jpg", 0}}, two)) << "a class without an image";
  EXPECT_FALSE(suffice({{"1.jpg", 0}, {"bee/1.jpg", 1}}, two)) << "an image in no folder";
  EXPECT_FALSE(suffice({{"ant/1.jpg", 1}, {"bee/1.jpg", 0}}, {"bee", "ant"})) << "class order";
  EXPECT_FALSE(suffice({{"1.jpg"}}, {}, [](PackHeader& header) { header.keys_are_paths = false; }));
  EXPECT_FALSE(
      suffice({{"1.jpg"}}, {}, [](PackHeader& header) { header.schema[0].name = "picture"; }));
  EXPECT_FALSE(suffice({{"ant/1.jpg", 0}}, {"ant"},
                       [](PackHeader& header) { header.schema[1].name = "kind"; }));
}

}  // namespace
}  // namespace headrace
