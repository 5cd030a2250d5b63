// SPDX-License-Identifier: Apache-2.0
// tests/test_mds.py compares shards written by streaming itself; here they are made by hand, so
// that each can be damaged in one place.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/mds/mds_test_shards.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

const std::vector<MdsTestColumn> kColumns = {
    {"label", "int", 8}, {"name", "str", 0}, {"weights", "ndarray:float32", 0}};

MdsTestSample sample_of(int i) {
  const std::vector<float> weights(static_cast<size_t>(i % 5 + 1), float(i));
  return {little_endian(int64_t{i}), "name" + std::to_string(i),
          std::string("\x04", 1) + little_endian(static_cast<uint8_t>(weights.size())) +
              std::string(reinterpret_cast<const char*>(weights.data()), weights.size() * 4)};
}

std::vector<MdsTestSample> some_samples(int first, int count) {
  std::vector<MdsTestSample> out;
  for (int i = first; i < first + count; ++i) out.push_back(sample_of(i));
  return out;
}

class MdsTest : public testing::Test {
 protected:
  // Two shards of 10 and 5 samples.
  void write_dataset() {
    shards[0] = mds_shard(kColumns, some_samples(0, 10));
    shards[1] = mds_shard(kColumns, some_samples(10, 5));
    data.write("d/shard.00000.mds", shards[0]);
    data.write("d/shard.00001.mds", shards[1]);
    data.write("d/index.json",
               mds_index(kColumns, {{.samples = 10}, {.raw = "shard.00001.mds", .samples = 5}}));
  }
  // A dataset of one shard.
  SourcePtr open_one(const std::vector<MdsTestColumn>& columns,
                     const std::vector<MdsTestSample>& samples,
                     const std::map<std::string, ParamValue>& arguments = {}) {
    data.write("d/shard.00000.mds", mds_shard(columns, samples));
    data.write("d/index.json", mds_index(columns, {{.samples = samples.size()}}));
    return open_source(data / "d", arguments);
  }
  std::string refusal(const std::map<std::string, ParamValue>& arguments = {}) {
    try {
      open_source(data / "d", arguments);
    } catch (const Exception& exception) {
      return exception.what();
    }
    return "opened";
  }
  std::string error_of(const Source& source, int64_t number) {
    record = RecordData();
    source.read({&number, 1}, std::vector<bool>(source.schema().size(), true), {&record, 1});
    return record.result ? "" : record.result.error().message();
  }
  std::string field(size_t number) const {
    const auto& bytes = record.fields[number].bytes;
    return {bytes.begin(), bytes.end()};
  }

  TemporaryFolder data;
  std::string shards[2];
  RecordData record;
};

TEST_F(MdsTest, records_are_the_samples_in_the_order_of_the_index) {
  write_dataset();
  const SourcePtr source = open_source(data / "d");
  ASSERT_EQ(source->size(), 15);
  EXPECT_EQ(source->description(), "mds " + (data / "d") + " (15 records in 2 files)");
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kLabel);
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kText);
  EXPECT_EQ(source->schema()[2].shape, (Shape{-1}));
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(error_of(*source, i), "");
    EXPECT_EQ(record.fields[0].scalar, i);
    EXPECT_EQ(field(1), "name" + std::to_string(i));
    EXPECT_EQ(field(2), sample_of(i)[2].substr(2));
    EXPECT_EQ(record.fields[2].shape, (Shape{i % 5 + 1}));
  }
  const std::vector<int64_t> labels = source->integer_column("label");
  ASSERT_EQ(labels.size(), 15u);
  EXPECT_EQ(labels[14], 14);
  EXPECT_EQ(source->key(12), "shard.00001.mds:2");
}

TEST_F(MdsTest, the_index_itself_opens_its_folder) {
  write_dataset();
  EXPECT_EQ(open_source(data / "d/index.json")->size(), 15);
}

TEST_F(MdsTest, a_folder_of_splits_is_rejected_with_a_hint) {
  for (const char* split : {"train", "val"}) {
    data.write(std::string("d/") + split + "/index.json", mds_index(kColumns, {{.samples = 1}}));
  }
  const std::string message = refusal();
  EXPECT_NE(message.find("HR0405"), std::string::npos) << message;
  EXPECT_NE(message.find("open " + (data / "d/train")), std::string::npos) << message;
}

TEST_F(MdsTest, columns_are_chosen_by_name_and_others_are_not_read) {
  const std::vector<MdsTestColumn> columns = {
      {"meta", "pkl", 0}, {"x-y", "bytes", 0}, {"1", "int", 8}};
  const MdsTestSample sample = {"\x80\x04.", "abc", little_endian(int64_t{-3})};
  const SourcePtr source =
      open_one(columns, {sample}, {{"columns", std::vector<std::string>{"1", "x-y"}}});
  ASSERT_EQ(source->schema().size(), 2u);
  EXPECT_EQ(source->schema()[0].name, "_1");
  EXPECT_EQ(source->schema()[1].name, "x_y");
  ASSERT_EQ(error_of(*source, 0), "");
  EXPECT_EQ(record.fields[0].scalar, -3);
  EXPECT_EQ(field(1), "abc");
  const std::string all = refusal();
  EXPECT_NE(all.find("HR0487"), std::string::npos) << all;
  EXPECT_NE(all.find("pickles"), std::string::npos) << all;
  EXPECT_NE(all.find("columns="), std::string::npos) << all;
  const std::string unknown = refusal({{"columns", std::vector<std::string>{"x_y"}}});
  EXPECT_NE(unknown.find("did you mean \"x-y\"?"), std::string::npos) << unknown;
}

TEST_F(MdsTest, every_encoding_of_numbers_and_text_is_read) {
  const std::vector<MdsTestColumn> columns = {
      {"a", "uint8", 1},   {"b", "int16", 2},       {"c", "float64", 8},
      {"d", "str_int", 0}, {"e", "str_float", 0},   {"f", "json", 0},
      {"g", "uint64", 8},  {"h", "str_decimal", 0}, {"label", "uint16", 2}};
  const MdsTestSample sample = {"\x07",
                                little_endian(int16_t{-2}),
                                little_endian(2.5),
                                "-123",
                                "1e-05",
                                "{\"x\": 1}",
                                little_endian(UINT64_MAX),
                                "1.10",
                                little_endian(uint16_t{65535})};
  const SourcePtr source = open_one(columns, {sample});
  ASSERT_EQ(error_of(*source, 0), "");
  EXPECT_EQ(source->schema()[1].dtype, DType::kInt16);
  EXPECT_EQ(field(1), little_endian(int16_t{-2}));
  EXPECT_EQ(record.fields[3].scalar, -123);
  EXPECT_EQ(field(4), little_endian(1e-05));
  EXPECT_EQ(field(5), "{\"x\": 1}");
  EXPECT_EQ(field(7), "1.10");
  EXPECT_EQ(record.fields[8].scalar, 65535);
  EXPECT_EQ(source->integer_column("d"), std::vector<int64_t>{-123});
  EXPECT_TRUE(source->integer_column("g").empty());

  MdsTestSample bad = sample;
  bad[3] = "99999999999999999999";
  EXPECT_NE(error_of(*open_one(columns, {sample, bad}), 1).find("is too large"), std::string::npos);
  bad[3] = "7x";
  EXPECT_NE(
      error_of(*open_one(columns, {sample, bad}), 1).find("column \"d\": the text is not a number"),
      std::string::npos);
}

TEST_F(MdsTest, pillow_pixels_become_planes) {
  const auto pil = [](uint32_t width, uint32_t height, const std::string& mode,
                      const std::string& pixels) {
    return little_endian(width) + little_endian(height) +
           little_endian(static_cast<uint32_t>(mode.size())) + mode + pixels;
  };
  const std::vector<MdsTestColumn> columns = {{"image", "pil", 0}};
  const SourcePtr source = open_one(columns, {{pil(2, 1, "RGB", "rgbRGB")},
                                              {pil(1, 2, "RGB", "rgbRGB")},
                                              {pil(2, 1, "L", "ab")},
                                              {pil(2, 2, "RGB", "rgbRGB")},
                                              {pil(1u << 31, 1u << 31, "RGB", "")},
                                              {"short"}});
  EXPECT_EQ(source->schema()[0].shape, (Shape{3, -1, -1}));
  ASSERT_EQ(error_of(*source, 0), "");
  EXPECT_EQ(field(0), "rRgGbB");
  EXPECT_EQ(record.fields[0].shape, (Shape{3, 1, 2}));
  ASSERT_EQ(error_of(*source, 1), "");
  EXPECT_EQ(record.fields[0].shape, (Shape{3, 2, 1}));
  EXPECT_NE(error_of(*source, 2).find("Pillow's mode \"L\""), std::string::npos);
  EXPECT_NE(error_of(*source, 3).find("an image of 3 x 2 x 2 has 6 bytes"), std::string::npos);
  EXPECT_NE(error_of(*source, 4).find("has 0 bytes"), std::string::npos) << error_of(*source, 4);
  EXPECT_NE(error_of(*source, 5).find("header is truncated"), std::string::npos);
}

TEST_F(MdsTest, arrays_are_read_with_and_without_their_type_and_shape) {
  const std::vector<MdsTestColumn> columns = {
      {"a", "ndarray", 0}, {"b", "ndarray:int16:2,1", 4}, {"image", "ndarray:uint8", 0}};
  const std::string array = std::string("\x21\x09\x02\x00\x01\x00", 6) +  // int32, two u16 sizes
                            little_endian(int32_t{5}) + little_endian(int32_t{6});
  const std::string image = std::string("\x0C\x03\x01\x02", 4) + "abcdef";
  const SourcePtr source = open_one(columns, {{array, "wxyz", image}});
  const Schema& schema = source->schema();
  EXPECT_EQ(schema[0].dtype, DType::kInt32);
  EXPECT_EQ(schema[0].shape, (Shape{-1, -1}));
  EXPECT_EQ(schema[1].shape, (Shape{2, 1}));
  EXPECT_EQ(schema[2].kind, FieldKind::kImage);
  EXPECT_EQ(schema[2].shape, (Shape{3, -1, -1}));
  ASSERT_EQ(error_of(*source, 0), "");
  EXPECT_EQ(record.fields[0].shape, (Shape{2, 1}));
  EXPECT_EQ(field(1), "wxyz");
  EXPECT_EQ(field(2), "abcdef");

  const std::string bomb = std::string("\x21\x0B", 2) + little_endian(uint64_t{1} << 63) +
                           little_endian(uint64_t{1} << 63);
  const SourcePtr bombs = open_one(columns, {{array, "wxyz", image}, {bomb, "wxyz", image}});
  EXPECT_NE(error_of(*bombs, 1).find("HR0488"), std::string::npos);
  data.write("d/index.json", mds_index({{"a", "ndarray:complex64", 0}}, {{.samples = 1}}));
  EXPECT_NE(refusal().find("arrays of an unknown type"), std::string::npos);
  data.write("d/index.json", mds_index({{"a", "list[jpeg]", 0}}, {{.samples = 1}}));
  EXPECT_NE(refusal().find("several images per sample"), std::string::npos);
}

TEST_F(MdsTest, one_of_the_first_samples_may_be_bad) {
  const std::string array = std::string("\x21\x04\x01", 3) + little_endian(int32_t{5});
  const SourcePtr source = open_one({{"a", "ndarray", 0}}, {{"??"}, {array}});
  EXPECT_EQ(source->schema()[0].dtype, DType::kInt32);
  EXPECT_NE(error_of(*source, 0).find("HR0488"), std::string::npos);
  EXPECT_EQ(error_of(*source, 1), "");
}

TEST_F(MdsTest, an_invalid_index_is_rejected) {
  write_dataset();
  const std::string good = mds_index(kColumns, {{.samples = 15}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    bad.replace(bad.find(from), from.size(), to);
    data.write("d/index.json", bad);
    return refusal({{"format", std::string("mds")}});
  };
  EXPECT_NE(with("], \"version\": 2", "], \"version\": 3").find("version 3, not 2"),
            std::string::npos);
  EXPECT_NE(with("\"mds\"", "\"csv\"").find("HR0487"), std::string::npos);
  EXPECT_NE(with("\"samples\": 15", "\"samples\": -1").find("an invalid number"),
            std::string::npos);
  EXPECT_NE(with("\"samples\": 15", "\"samples\": 1.5").find("whole number"), std::string::npos);
  EXPECT_NE(with("[8, null", "[8").find("3 column names, 3 encodings and 2 sizes"),
            std::string::npos);
  EXPECT_NE(with("[8, null", "[-8, null").find("negative"), std::string::npos);
  for (const char* name : {"../shard.mds", "/etc/passwd", "a/../../b", "..", ""}) {
    EXPECT_NE(with("shard.00000.mds", name).find("is not in the folder"), std::string::npos)
        << name;
  }
  EXPECT_NE(with("shard.00000.mds", "shard.00009.mds").find("which is not in the folder"),
            std::string::npos);
  EXPECT_NE(with("{\"shards\"", "{").find("HR0486"), std::string::npos);
  data.write("d/index.json", mds_index(kColumns, {}));
  EXPECT_NE(refusal({{"format", std::string("mds")}}).find("it lists no shards"),
            std::string::npos);
  for (size_t cut = 0; cut < 64; ++cut) {
    data.write("d/index.json", good.substr(0, good.size() * cut / 64));
    EXPECT_NE(refusal({{"format", std::string("mds")}}).find("HR0486"), std::string::npos) << cut;
  }
}

TEST_F(MdsTest, unsupported_compression_is_rejected_by_name) {
  data.write("d/s.mds.br", "x");
  data.write("d/index.json",
             mds_index(kColumns,
                       {{.raw = "s.mds", .packed = "s.mds.br", .packing = "br:11", .samples = 1}}));
  const std::string message = refusal();
  EXPECT_NE(message.find("HR0487"), std::string::npos) << message;
  EXPECT_NE(message.find("compressed with br"), std::string::npos) << message;
}

TEST_F(MdsTest, a_shard_with_a_wrong_number_of_samples_is_one_bad_record) {
  write_dataset();
  shards[0][0] = 9;
  data.write("d/shard.00000.mds", shards[0]);
  const SourcePtr source = open_source(data / "d");
  ASSERT_EQ(source->size(), 6);
  const std::string message = error_of(*source, 0);
  EXPECT_NE(message.find("HR0488"), std::string::npos) << message;
  EXPECT_NE(message.find("declares 10 samples for the shard, but the shard, of "),
            std::string::npos)
      << message;
  EXPECT_EQ(error_of(*source, 1), "");
  EXPECT_EQ(record.fields[0].scalar, 10);
}

TEST_F(MdsTest, a_truncated_shard_loses_only_its_last_samples) {
  write_dataset();
  data.write("d/shard.00000.mds", shards[0].substr(0, shards[0].size() - 5));
  const SourcePtr source = open_source(data / "d");
  ASSERT_EQ(source->size(), 15);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(error_of(*source, i).empty(), i != 9) << i;
  EXPECT_NE(error_of(*source, 9).find("but the shard has"), std::string::npos);
  const std::vector<int64_t> labels = source->integer_column("label");
  ASSERT_EQ(labels.size(), 15u);
  for (int i = 0; i < 15; ++i) {
    ASSERT_EQ(error_of(*source, i).empty(), i != 9);
    EXPECT_EQ(labels[i], i == 9 ? -1 : record.fields[0].scalar) << i;
  }
}

TEST_F(MdsTest, decreasing_offsets_damage_two_samples) {
  write_dataset();
  uint32_t offset = 3;
  std::memcpy(shards[0].data() + 4 + 4 * 4, &offset, sizeof offset);
  data.write("d/shard.00000.mds", shards[0]);
  const SourcePtr source = open_source(data / "d");
  for (int i = 0; i < 15; ++i) EXPECT_EQ(error_of(*source, i).empty(), i != 3 && i != 4) << i;
  EXPECT_NE(error_of(*source, 4).find("samples start at 48"), std::string::npos)
      << error_of(*source, 4);
}

TEST_F(MdsTest, lengths_that_do_not_fit_their_sample_are_errors) {
  write_dataset();
  uint32_t begin = 0;
  std::memcpy(&begin, shards[0].data() + 4 + 4 * 2, sizeof begin);
  for (const uint32_t length : {uint32_t{4}, uint32_t{6}, UINT32_MAX}) {
    std::memcpy(shards[0].data() + begin, &length, sizeof length);
    data.write("d/shard.00000.mds", shards[0]);
    const std::string message = error_of(*open_source(data / "d"), 2);
    EXPECT_NE(message.find("HR0488"), std::string::npos) << message;
    EXPECT_NE(message.find("byte " + std::to_string(begin)), std::string::npos) << message << begin;
  }
}

TEST_F(MdsTest, survives_every_truncation_and_changed_byte_of_a_shard) {
  write_dataset();
  const std::string whole = shards[1];
  const auto survive = [&](const std::string& bytes) {
    data.write("d/shard.00001.mds", bytes);
    const SourcePtr source = open_source(data / "d");
    for (int64_t i = 0; i < source->size(); ++i) (void)error_of(*source, i);
    (void)source->integer_column("label");
  };
  for (size_t cut = 0; cut < 64; ++cut) survive(whole.substr(0, whole.size() * cut / 64));
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ (at % 2 ? 0x80 : 0xFF));
    survive(bytes);
  }
}

}  // namespace
}  // namespace headrace
