// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/columns.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <numeric>

#include "headrace/base/allocations_test_hook.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace {
thread_local int64_t allocations = 0;
}

void headrace::before_allocation() { ++allocations; }

namespace headrace {
namespace {

using Labels = std::vector<int64_t>;

template <class Number>
DType dtype_of();
template <>
DType dtype_of<uint8_t>() {
  return DType::kUInt8;
}
template <>
DType dtype_of<int32_t>() {
  return DType::kInt32;
}
template <>
DType dtype_of<int64_t>() {
  return DType::kInt64;
}
template <>
DType dtype_of<uint64_t>() {
  return DType::kUInt64;
}
template <>
DType dtype_of<float>() {
  return DType::kFloat32;
}

// An array that owns its numbers 0, 1, 2, ...
template <class Number>
ArrayColumn array(int64_t count, Shape shape = {}) {
  auto values = std::make_shared<std::vector<Number>>(count * element_count(shape));
  std::iota(values->begin(), values->end(), Number{0});
  return {values->data(), dtype_of<Number>(), count, shape, values};
}

Error error_of(std::vector<Column> columns) {
  return headrace::error_of([&] { records(std::move(columns)); });
}

TEST(Columns, ArraysOfImagesAreDeliveredUnchanged) {
  const ArrayColumn images = array<uint8_t>(10, {3, 4, 5});
  const SourcePtr source = records({{"image", images}, {"label", array<int64_t>(10)}});
  EXPECT_EQ(source->read_style(), ReadStyle::kMemory);
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_FALSE(source->schema()[0].encoded);
  EXPECT_EQ(source->schema()[0].shape, (Shape{3, 4, 5}));
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kLabel);
  const RecordData record = read_record(*source, 7);
  EXPECT_EQ(record.fields[0].bytes.data(), static_cast<const uint8_t*>(images.data) + 7 * 60);
  EXPECT_EQ(record.fields[0].bytes.size(), 60u);
  EXPECT_EQ(record.fields[1].scalar, 7);
  EXPECT_EQ(record.index, 7);
  EXPECT_EQ(source->key(7), "7");
  EXPECT_EQ(source->description(), "records of image, label (10 records)");
}

TEST(Columns, GrayImagesNeedNoChannelAxis) {
  const SourcePtr source = records({{"mask", array<uint8_t>(2, {28, 28})}});
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kMask);
  EXPECT_EQ(source->schema()[0].shape, (Shape{1, 28, 28}));
}

TEST(Columns, LabelsOfAnyIntegerTypeBecomeInt64) {
  const auto labels = [](ArrayColumn column) {
    return records({{"label", std::move(column)}})->integer_column("label");
  };
  EXPECT_EQ(labels(array<uint8_t>(3)), (Labels{0, 1, 2}));
  EXPECT_EQ(labels(array<int32_t>(3)), (Labels{0, 1, 2}));
  EXPECT_EQ(labels(array<uint64_t>(3)), (Labels{0, 1, 2}));
  static const int8_t negative[] = {-1, 5};
  EXPECT_EQ(labels({negative, DType::kInt8, 2}), (Labels{-1, 5}));
  static const uint64_t huge[] = {1, UINT64_MAX, uint64_t{1} << 63};
  EXPECT_NE(error_of({{"label", ArrayColumn{huge, DType::kUInt64, 3}}})
                .what.find("18446744073709551615 of record 1 does not fit"),
            std::string::npos);
}

TEST(Columns, LabelsNeedNotBeAligned) {
  alignas(8) static char memory[25];
  for (int64_t i = 0; i < 3; ++i) std::memcpy(memory + 1 + 8 * i, &i, 8);
  const SourcePtr source = records({{"label", ArrayColumn{memory + 1, DType::kInt64, 3}}});
  EXPECT_EQ(source->integer_column("label"), (Labels{0, 1, 2}));
  EXPECT_EQ(read_record(*source, 2).fields[0].scalar, 2);
}

TEST(Columns, OtherArraysAreTensors) {
  const SourcePtr source = records({{"image", array<float>(4, {3, 2, 2})},
                                    {"boxes", array<int32_t>(4, {4})},
                                    {"age", array<float>(4)},
                                    {"serial", array<int64_t>(4)}});
  for (const Field& field : source->schema()) EXPECT_EQ(field.kind, FieldKind::kTensor);
  EXPECT_EQ(source->schema()[0].dtype, DType::kFloat32);
  const RecordData record = read_record(*source, 3);
  EXPECT_EQ(record.fields[0].bytes.size(), 48u);
  EXPECT_EQ(record.fields[1].bytes.size(), 16u);
  float age = 0;
  std::memcpy(&age, record.fields[2].bytes.data(), sizeof age);
  EXPECT_EQ(age, 3.0f);
  EXPECT_EQ(record.fields[3].scalar, 3);
  EXPECT_EQ(source->integer_column("serial"), (Labels{0, 1, 2, 3}));
  EXPECT_TRUE(source->integer_column("age").empty());
  EXPECT_TRUE(source->integer_column("none").empty());
}

TEST(Columns, FilesAreImagesByName) {
  TemporaryFolder folder;
  const PathColumn images{{folder.write("1.jpg", "one"), folder.write("2.jpg", "two")}};
  const PathColumn masks{{folder.write("1.png", "m1"), folder / "gone.png"}};
  const SourcePtr source = records({{"image", images}, {"mask", masks}});
  EXPECT_EQ(source->read_style(), ReadStyle::kFiles);
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kMask);
  EXPECT_TRUE(source->schema()[1].encoded);
  EXPECT_EQ(source->key(1), folder / "2.jpg");
  const RecordData record = read_record(*source, 0);
  EXPECT_EQ(text_of(record.fields[0]), "one");
  EXPECT_EQ(text_of(record.fields[1]), "m1");
  const RecordData missing = read_record(*source, 1);
  EXPECT_EQ(missing.result.error().where.file, folder / "gone.png");
  EXPECT_EQ(missing.result.error().where.record, 1);
}

TEST(Columns, AnExplicitKindWins) {
  TemporaryFolder folder;
  const PathColumn files{{folder.write("1.txt", "caption")}};
  const SourcePtr source = records({{"caption", files, FieldKind::kText},
                                    {"raw", files, FieldKind::kBytes},
                                    {"view", files},
                                    {"image", array<uint8_t>(1, {1, 2, 2}), FieldKind::kTensor},
                                    {"label", TextColumn{{"x"}}, FieldKind::kText}});
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kText);
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kBytes);
  EXPECT_EQ(source->schema()[2].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[3].kind, FieldKind::kTensor);
  EXPECT_EQ(source->schema()[4].kind, FieldKind::kText);
  EXPECT_EQ(text_of(read_record(*source, 0).fields[0]), "caption");
}

TEST(Columns, StringsAreTextAndNamesOfClasses) {
  const SourcePtr source = records({{"caption", TextColumn{{"a cat", "", "a dog"}}},
                                    {"label", TextColumn{{"cat", "ant", "cat"}}}});
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kText);
  EXPECT_EQ(text_of(read_record(*source, 2).fields[0]), "a dog");
  EXPECT_EQ(text_of(read_record(*source, 1).fields[0]), "");
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kLabel);
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"ant", "cat"}));
  EXPECT_EQ(source->integer_column("label"), (Labels{1, 0, 1}));
}

TEST(Columns, TheSourceKeepsTheArrayAlive) {
  std::weak_ptr<const void> memory;
  SourcePtr source;
  {
    ArrayColumn images = array<uint8_t>(4, {1, 8, 8});
    memory = images.owner;
    source = records({{"image", std::move(images)}});
  }
  EXPECT_FALSE(memory.expired());
  EXPECT_EQ(read_record(*source, 1).fields[0].bytes[0], 64);
  source.reset();
  EXPECT_TRUE(memory.expired());
}

TEST(Columns, ReadingMemoryAllocatesNothing) {
  const SourcePtr source =
      records({{"image", array<uint8_t>(100, {3, 8, 8})},
               {"label", array<int32_t>(100)},
               {"caption", TextColumn{std::vector<std::string>(100, "text")}}});
  std::vector<RecordData> out(10);
  std::vector<int64_t> indices(10);
  const std::vector<bool> wanted(3, true);
  std::iota(indices.begin(), indices.end(), 5);
  source->read(indices, wanted, out);
  const int64_t before = allocations;
  for (int i = 0; i < 100; ++i) source->read(indices, wanted, out);
  EXPECT_EQ(allocations, before);
}

// "one", null, "", "three", in two parts with offsets of either width.
struct Blobs {
  const uint8_t* data = reinterpret_cast<const uint8_t*>("__onethree");
  int32_t narrow[4] = {2, 5, 5, 5};
  int64_t wide[2] = {5, 10};
  uint8_t valid = 0b1010;  // bit 1 is for the first record
  BlobColumn column() const {
    return {.parts = {{data, 10, narrow, false, 3, &valid, 1}, {data, 10, wide, true, 1}}};
  }
};

TEST(Columns, BlobsAreReadInPlace) {
  const Blobs blobs;
  const SourcePtr source = records(
      {{"image", blobs.column(), FieldKind::kImage}, {"text", blobs.column(), FieldKind::kText}});
  EXPECT_EQ(source->read_style(), ReadStyle::kMemory);
  EXPECT_TRUE(source->schema()[0].encoded);
  EXPECT_EQ(source->size(), 4);
  EXPECT_EQ(text_of(read_record(*source, 0).fields[0]), "one");
  EXPECT_EQ(read_record(*source, 0).fields[0].bytes.data(), blobs.data + 2);
  EXPECT_EQ(text_of(read_record(*source, 3).fields[1]), "three");
  const RecordData missing = read_record(*source, 1);
  ASSERT_FALSE(missing.result);
  EXPECT_EQ(missing.result.error().code->id, "HR0428");
  EXPECT_EQ(missing.result.error().where.record, 1);
  const SourcePtr texts = records({{"text", blobs.column(), FieldKind::kText}});
  EXPECT_TRUE(read_record(*texts, 1).result);  // of text, none and empty are the same
  EXPECT_EQ(text_of(read_record(*texts, 1).fields[0]), "");
}

TEST(Columns, BlobsOfATruncatedFileAreBadRecords) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x", "in front of it onethree");
  Blobs blobs;
  BlobColumn column = blobs.column();
  column.files = std::make_shared<const FileSet>(std::vector<std::string>{path});
  for (BlobColumn::Part& part : column.parts) {
    part.data = nullptr;
    part.file = 0;
    part.position = 13;  // two bytes of it come before the first
  }
  const SourcePtr source = records({{"data", std::move(column), FieldKind::kBytes}});
  EXPECT_EQ(source->read_style(), ReadStyle::kFiles);
  EXPECT_EQ(text_of(read_record(*source, 0).fields[0]), "one");
  EXPECT_EQ(text_of(read_record(*source, 3).fields[0]), "three");
  EXPECT_EQ(read_record(*source, 1).result.error().code->id, "HR0428");
  std::filesystem::resize_file(path, 20);
  EXPECT_EQ(text_of(read_record(*source, 0).fields[0]), "one");
  const RecordData cut = read_record(*source, 3);
  ASSERT_FALSE(cut.result);
  EXPECT_EQ(cut.result.error().where.record, 3);
  EXPECT_TRUE(is_bad_record(cut.result.error()));
}

TEST(Columns, BlobsOfNumbersAreVectors) {
  static const float values[] = {1, 2, 3};
  static const int32_t offsets[] = {0, 2, 2, 3};
  const SourcePtr source = records(
      {{"v",
        BlobColumn{.parts = {{reinterpret_cast<const uint8_t*>(values), 12, offsets, false, 3}},
                   .dtype = DType::kFloat32},
        FieldKind::kTensor}});
  EXPECT_EQ(source->schema()[0].shape, (Shape{-1}));
  EXPECT_EQ(read_record(*source, 0).fields[0].shape, (Shape{2}));
  EXPECT_EQ(read_record(*source, 1).fields[0].shape, (Shape{0}));
  EXPECT_EQ(read_record(*source, 2).fields[0].bytes.size(), 4u);
}

TEST(Columns, OffsetsOutsideOfTheDataAreRefused) {
  static const uint8_t data[10] = {};
  const auto what = [&](std::vector<int64_t> offsets) {
    const BlobColumn column{.parts = {{data, 10, offsets.data(), true, 2}}};
    return error_of({{"x", column, FieldKind::kBytes}}).what;
  };
  for (const std::vector<int64_t>& offsets :
       {std::vector<int64_t>{0, 5, 11}, {0, 6, 5}, {-1, 0, 1}, {0, 1, INT64_MAX}}) {
    EXPECT_EQ(what(offsets), "field 'x': the offsets of its values do not fit its data");
  }
}

TEST(Columns, MismatchesAreNamed) {
  const auto message = [](std::vector<Column> columns) {
    const Error error = error_of(std::move(columns));
    EXPECT_EQ(error.code->id, "HR0420");
    return error.what + " / " + error.hint;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(message({}), "no field");
  has(message({{"a", array<float>(3)}, {"b", array<float>(4)}}),
      "'b': it has 4 records, but 'a' has 3");
  has(message({{"a", array<float>(3)}, {"a", array<float>(3)}}), "twice");
  has(message({{"a b", array<float>(3)}}), "a word");
  has(message({{"1a", array<float>(3)}}), "a word");
  has(message({{"", array<float>(3)}}), "a word");
  has(message({{"id", array<int64_t>(3)}}), "already");
  has(message({{"image", array<uint8_t>(3, {28, 28, 3})}}),
      "channels come first (got uint8 (N, 28, 28, 3)) / use array.transpose(0, 3, 1, 2)");
  has(message({{"image", array<uint8_t>(3, {17, 28, 28})}}), "1 to 16 channels");
  has(message({{"image", array<int64_t>(3, {3, 2, 2}), FieldKind::kImage}}), "uint16");
  has(message({{"image", array<uint8_t>(3, {3, 0, 2})}}), "at least one pixel");
  has(message({{"label", array<float>(3), FieldKind::kLabel}}), "integers, not float32");
  has(message({{"label", array<int64_t>(3, {2}), FieldKind::kLabel}}), "one number per record");
  has(message({{"text", array<uint8_t>(3, {2}), FieldKind::kText}}), "an array is not text");
  has(message({{"label", PathColumn{{"a"}}, FieldKind::kLabel}}), "not label");
  has(message({{"image", PathColumn{{"a", ""}}}}), "record 1 is empty");
  has(message({{"t", TextColumn{{"a"}}, FieldKind::kImage}}), "not image");
}

TEST(Columns, ZeroRecordsAreAllowed) {
  const SourcePtr source =
      records({{"image", array<uint8_t>(0, {3, 2, 2})}, {"label", TextColumn{}}});
  EXPECT_EQ(source->size(), 0);
  EXPECT_TRUE(source->integer_column("label").empty());
}

TEST(Columns, FingerprintFollowsNamesTypesAndLabels) {
  const auto print = [](std::vector<Column> columns) {
    return records(std::move(columns))->fingerprint();
  };
  const uint64_t one =
      print({{"image", array<uint8_t>(9, {1, 2, 2})}, {"label", array<int32_t>(9)}});
  EXPECT_EQ(print({{"image", array<uint8_t>(9, {1, 2, 2})}, {"label", array<int64_t>(9)}}), one);
  EXPECT_NE(print({{"photo", array<uint8_t>(9, {1, 2, 2})}, {"label", array<int32_t>(9)}}), one);
  EXPECT_NE(print({{"image", array<uint8_t>(9, {1, 4, 1})}, {"label", array<int32_t>(9)}}), one);
  EXPECT_NE(print({{"image", array<uint8_t>(8, {1, 2, 2})}, {"label", array<int32_t>(8)}}), one);
  EXPECT_NE(print({{"image", PathColumn{{"a", "b"}}}}), print({{"image", PathColumn{{"a", "c"}}}}));
  EXPECT_NE(print({{"label", TextColumn{{"a", "b"}}}}), print({{"label", TextColumn{{"b", "a"}}}}));
}

}  // namespace
}  // namespace headrace
