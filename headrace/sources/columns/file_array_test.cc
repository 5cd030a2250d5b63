// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/file_array.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "headrace/sources/columns/columns.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Bytes = std::vector<uint8_t>;

std::string counting(size_t bytes) {
  std::string out(bytes, 0);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

class FileArrays : public testing::Test {
 protected:
  std::shared_ptr<const File> file(const std::string& content) {
    const std::string path = folder_.write("file" + std::to_string(files_++), content);
    return std::make_shared<const File>(std::move(*File::open(path)));
  }
  static Bytes read(const FileArray& array, int64_t record) {
    EXPECT_EQ(array.problem(), "");
    Buffer out, scratch;
    EXPECT_TRUE(array.read(record, out, scratch));
    const Bytes one(out.data(), out.data() + out.size());
    Bytes all(static_cast<size_t>(array.count()) * array.record_bytes());
    EXPECT_TRUE(array.load(all));
    EXPECT_EQ(
        std::memcmp(all.data() + static_cast<size_t>(record) * one.size(), one.data(), one.size()),
        0)
        << "loading gives other bytes than reading";
    return one;
  }
  static Error error_of(std::vector<Column> columns) {
    try {
      records(std::move(columns));
    } catch (const Exception& exception) {
      return exception.error();
    }
    ADD_FAILURE() << "no exception";
    return {};
  }
  TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(FileArrays, RecordsAreContiguousAfterTheOffset) {
  const FileArray array{
      .parts = {{file(counting(40)), 4, 6}}, .dtype = DType::kUInt8, .shape = {2, 3}};
  EXPECT_EQ(read(array, 0), (Bytes{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(read(array, 5), (Bytes{34, 35, 36, 37, 38, 39}));
}

TEST_F(FileArrays, RecordsMayHaveGaps) {
  FileArray array{.parts = {{file(counting(40)), 1, 4}}, .shape = {3}, .stride = 10};
  EXPECT_EQ(read(array, 3), (Bytes{31, 32, 33}));
  std::string wide(200'000, 'x');
  wide.replace(150'000, 3, "abc");
  array = {.parts = {{file(wide), 0, 4}}, .shape = {3}, .stride = 50'000};
  EXPECT_EQ(read(array, 3), (Bytes{'a', 'b', 'c'}));
}

TEST_F(FileArrays, SeveralFilesFollowEachOther) {
  const FileArray array{.parts = {{file("abcd"), 0, 2}, {file(""), 0, 0}, {file("efgh"), 2, 1}},
                        .shape = {2}};
  EXPECT_EQ(array.count(), 3);
  EXPECT_EQ(read(array, 1), (Bytes{'c', 'd'}));
  EXPECT_EQ(read(array, 2), (Bytes{'g', 'h'}));
}

TEST_F(FileArrays, BigEndianNumbersBecomeNative) {
  const auto first = [](const FileArray& array) { return read(array, 1); };
  const std::string bytes = counting(32);
  FileArray array{
      .parts = {{file(bytes), 0, 2}}, .dtype = DType::kUInt16, .shape = {2}, .big_endian = true};
  EXPECT_EQ(first(array), (Bytes{5, 4, 7, 6}));
  array.dtype = DType::kFloat32;
  array.shape = {};
  EXPECT_EQ(first(array), (Bytes{7, 6, 5, 4}));
  array.dtype = DType::kInt64;
  EXPECT_EQ(first(array), (Bytes{15, 14, 13, 12, 11, 10, 9, 8}));
}

TEST_F(FileArrays, ChannelsThatComeLastAreMovedToTheFront) {
  const FileArray bytes{
      .parts = {{file(counting(24)), 0, 2}}, .shape = {3, 2, 2}, .channels_last = true};
  EXPECT_EQ(read(bytes, 1), (Bytes{12, 15, 18, 21, 13, 16, 19, 22, 14, 17, 20, 23}));
  const FileArray words{.parts = {{file(counting(24)), 0, 2}},
                        .dtype = DType::kUInt16,
                        .shape = {3, 1, 2},
                        .channels_last = true};
  EXPECT_EQ(read(words, 0), (Bytes{0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}));
}

TEST_F(FileArrays, ABoolIsZeroOrOneForAnyFileContents) {
  const FileArray array{
      .parts = {{file({0, 1, 2, '\xff'}), 0, 1}}, .dtype = DType::kBool, .shape = {4}};
  EXPECT_EQ(read(array, 0), (Bytes{0, 1, 1, 1}));
}

TEST_F(FileArrays, DataOutsideTheFileIsRefused) {
  const std::shared_ptr<const File> ten = file(counting(10));
  const auto problem = [&](uint64_t offset, int64_t count, Shape shape, uint64_t stride = 0) {
    return FileArray{.parts = {{ten, offset, count}}, .shape = std::move(shape), .stride = stride}
        .problem();
  };
  EXPECT_EQ(problem(0, 5, {2}), "");
  EXPECT_EQ(problem(2, 4, {2}), "");
  EXPECT_EQ(problem(0, 3, {2}, 4), "");
  EXPECT_EQ(problem(1, 5, {2}), "it ends at byte 11, but " + ten->path() + " has 10");
  EXPECT_NE(problem(0, 6, {2}), "");
  EXPECT_NE(problem(1, 3, {2}, 4), "");
  EXPECT_NE(problem(0, 2, {4}, 3), "");
  EXPECT_NE(problem(UINT64_MAX, 1, {2}), "");
  EXPECT_NE(problem(0, INT64_MAX, {2}), "");
  EXPECT_NE(problem(0, -1, {2}), "");
  EXPECT_NE(problem(0, 1, {-2}), "");
  EXPECT_NE(problem(0, 2, {int64_t{1} << 62, 4}), "");
  EXPECT_NE(problem(0, 2, {2}, UINT64_MAX / 2), "");
  EXPECT_NE(problem(0, 0, {int64_t{1} << 32, int64_t{1} << 31}), "");  // no record, and too large
  const Error error = error_of({{"x", FileArray{.parts = {{ten, 1, 5}}, .shape = {2}}}});
  EXPECT_EQ(error.code->id, "HR0420");
  EXPECT_NE(error.what.find("'x': it ends at byte 11"), std::string::npos);
  EXPECT_NE(error_of({{"x", FileArray{.parts = {{ten, 0, 5}}, .shape = {0}}}}).what.find("no elem"),
            std::string::npos);
}

TEST_F(FileArrays, FieldsFollowTheRulesOfArrays) {
  const auto pictures = file(counting(250) + counting(250));
  const SourcePtr source =
      records({{"image", FileArray{.parts = {{pictures, 0, 3}}, .shape = {10, 10}}},
               {"label",
                FileArray{.parts = {{pictures, 0, 3}}, .dtype = DType::kInt16, .big_endian = true},
                {},
                {"a", "b"}},
               {"box", FileArray{.parts = {{pictures, 4, 3}}, .shape = {2, 2}}}},
              "npy x.npy");
  EXPECT_EQ(source->read_style(), ReadStyle::kFiles);
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[0].shape, (Shape{1, 10, 10}));
  EXPECT_EQ(source->schema()[1].kind, FieldKind::kLabel);
  EXPECT_EQ(source->schema()[2].kind, FieldKind::kTensor);
  EXPECT_EQ(source->description(), "npy x.npy (3 records, 2 classes)");
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{0x0001, 0x0203, 0x0405}));
  std::vector<RecordData> out(1);
  source->read(std::vector<int64_t>{2}, {true, true, true}, out);
  EXPECT_EQ(out[0].fields[0].bytes.size(), 100u);
  EXPECT_EQ(out[0].fields[0].bytes[0], 200);
  EXPECT_EQ(out[0].fields[1].scalar, 0x0405);
  EXPECT_EQ(Bytes(out[0].fields[2].bytes.begin(), out[0].fields[2].bytes.end()),
            (Bytes{12, 13, 14, 15}));
  EXPECT_NE(error_of({{"image", FileArray{.parts = {{pictures, 0, 1}}, .shape = {17, 5, 5}}}})
                .what.find("1 to 16 channels"),
            std::string::npos);
}

TEST_F(FileArrays, TheFingerprintEqualsThatOfTheSameArrayInMemory) {
  for (const int64_t size : {20, 200}) {  // loaded, and read by position
    const std::string content = counting(5 * static_cast<size_t>(size));
    const auto print = [](auto values) { return records({{"x", values}})->fingerprint(); };
    const ArrayColumn memory{content.data(), DType::kUInt8, 5, {size}};
    FileArray array{.parts = {{file(content), 0, 5}}, .shape = {size}};
    EXPECT_EQ(print(array), print(memory));
    std::string other = content;
    other[4 * static_cast<size_t>(size)] ^= 1;
    array.parts[0].file = file(other);
    EXPECT_NE(print(array), print(memory));
  }
}

TEST_F(FileArrays, MemoryIsBorrowedIfUnchanged) {
  auto memory = std::make_shared<Buffer>(96);
  std::iota(memory->data(), memory->data() + 96, uint8_t{0});
  FileArray array{.parts = {{nullptr, 8, 4, memory}}, .dtype = DType::kInt16, .shape = {2}};
  EXPECT_EQ(read(array, 1), (Bytes{12, 13, 14, 15}));
  EXPECT_EQ(array.in_place(), memory->data() + 8);
  const SourcePtr source = records({{"x", array}});
  EXPECT_EQ(source->read_style(), ReadStyle::kMemory);
  std::vector<RecordData> out(1);
  source->read(std::vector<int64_t>{1}, {true}, out);
  EXPECT_EQ(out[0].fields[0].bytes.data(), memory->data() + 12);
  array.big_endian = true;
  EXPECT_EQ(array.in_place(), nullptr);
  EXPECT_EQ(read(array, 1), (Bytes{13, 12, 15, 14}));
  array.parts[0].offset = 7;
  EXPECT_EQ(read(array, 0), (Bytes{8, 7, 10, 9}));
  array.parts[0].offset = 81;
  EXPECT_EQ(array.problem(), "it ends at byte 97, but there are 96");
}

TEST_F(FileArrays, AFileThatIsTruncatedWhileOpenIsAnErrorOfTheRecord) {
  const SourcePtr source =
      records({{"x", FileArray{.parts = {{file(counting(1000)), 0, 10}}, .shape = {100}}}});
  std::filesystem::resize_file(folder_ / "file0", 550);
  std::vector<RecordData> out(10);
  std::vector<int64_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  source->read(all, {true}, out);
  EXPECT_TRUE(out[4].result);
  ASSERT_FALSE(out[5].result);
  EXPECT_EQ(out[5].result.error().code->id, "HR0205");
  EXPECT_EQ(out[5].result.error().where.record, 5);
  EXPECT_EQ(out[5].result.error().where.offset, 550);
}

TEST_F(FileArrays, ARecordBeyondTheMemoryLimitIsNotRead) {
  const SourcePtr source =
      records({{"x", FileArray{.parts = {{file(counting(1000)), 0, 10}}, .shape = {100}}}});
  std::vector<RecordData> out(1);
  out[0].max_bytes = 99;
  source->read(std::vector<int64_t>{0}, {true}, out);
  ASSERT_FALSE(out[0].result);
  EXPECT_EQ(out[0].result.error().code->id, "HR0421");
  EXPECT_EQ(out[0].result.error().what, "the record has 100 bytes, the cap is 99");
}

}  // namespace
}  // namespace headrace
