// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "headrace/formats/arrays/array_test_files.h"
#include "headrace/formats/format.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

std::string safetensors(const std::string& header, const std::string& data) {
  std::string out;
  ZipWriter::number(out, header.size(), 8);
  return out + header + data;
}

const std::string kSound = safetensors(
    R"({"__metadata__":{"format":"pt"},)"
    R"("x":{"dtype":"U8","shape":[2,10,10],"data_offsets":[0,200]},)"
    R"("y":{"dtype":"I64","shape":[2],"data_offsets":[200,216]},)"
    R"("layer.weight":{"dtype":"BF16","shape":[2,40],"data_offsets":[216,376]}}   )",
    counting(200) + std::string("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16) + counting(160));

class Safetensors : public testing::Test {
 protected:
  SourcePtr open(const std::string& content,
                 const std::map<std::string, ParamValue>& arguments = {}) {
    return open_source(folder_.write("a.safetensors", content), arguments);
  }
  Error refused(const std::string& header, const std::string& data) {
    return error_of([&] { open(safetensors(header, data)); });
  }
  TemporaryFolder folder_;
};

TEST_F(Safetensors, TensorsAreFields) {
  const SourcePtr source = open(kSound);
  ASSERT_EQ(source->schema().size(), 3u);
  EXPECT_EQ(source->schema()[0].name, "image");
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_EQ(source->schema()[1].name, "label");
  EXPECT_EQ(source->schema()[2].name, "layer_weight");
  EXPECT_EQ(source->schema()[2].dtype, DType::kBFloat16);
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(bytes_of(*source, 1)[0], 100);
  EXPECT_EQ(bytes_of(*source, 1, 2)[0], 80);
  EXPECT_EQ(open_source(folder_.write("weights", kSound))->size(), 2);  // recognized by its content
  EXPECT_EQ(
      open(kSound, {{"fields", std::vector<std::string>{"w=layer.weight"}}})->schema()[0].name,
      "w");
}

TEST_F(Safetensors, DamageIsNamed) {
  const auto has = [](const Error& error, const std::string& part) {
    EXPECT_EQ(error.code->id, "HR0424") << part;
    EXPECT_NE(error.what.find(part), std::string::npos) << error.what;
  };
  const auto one = [](const std::string& rest) { return R"({"a":{"dtype":"U8",)" + rest + "}}"; };
  const std::string two = R"({"dtype":"U8","shape":[2],"data_offsets":[)";
  has(refused(one(R"("shape":[2],"data_offsets":[0,3])"), "ab"), "and end by 2");
  has(refused(one(R"("shape":[2],"data_offsets":[0,2])"), "abc"), "the tensors end at byte 2 of 3");
  has(refused(one(R"("shape":[2],"data_offsets":[1,3])"), "abc"), "must start at 0");
  has(refused(R"({"a":)" + two + R"(0,2]},"b":)" + two + "1,3]}}", "abc"), "'b' is at bytes 1");
  has(refused(R"({"a":)" + two + R"(0,2]},"a":)" + two + "2,4]}}", "abcd"), "'a' appears twice");
  has(refused(one(R"("shape":[3],"data_offsets":[0,2])"), "ab"), "'a' of U8 (3,) has 2 bytes");
  has(refused(one(R"("shape":[9223372036854775807,4],"data_offsets":[0,2])"), "ab"), "has 2 bytes");
  has(refused(one(R"("shape":[-1],"data_offsets":[0,2])"), "ab"), "not a non-negative number");
  has(refused(one(R"("shape":[2],"data_offsets":[0,2.5])"), "ab"), "not a non-negative number");
  has(refused(one(R"("shape":[2])"), "ab"), "two data_offsets");
  has(refused("[1]", "ab"), "its header:");
  has(refused(std::string(100000, '['), ""), "its header:");
  has(refused(R"({"a":)" + two + "0,2]}} x", "ab"), "its header:");
  has(error_of([&] { open("\xff\xff\xff\xff\xff\xff\xff\xff{}"); }), "18446744073709551615 bytes");
  has(error_of([&] { open("abc"); }), "a header of 0 bytes in a file of 3");
}

TEST_F(Safetensors, UnsupportedDtypesAreRejected) {
  const Error type = refused(R"({"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}})", "ab");
  EXPECT_EQ(type.code->id, "HR0425");
  EXPECT_EQ(type.what, "tensor 'a' is of type F8_E4M3");
  EXPECT_EQ(refused(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "a").code->id,
            "HR0425");
  EXPECT_EQ(refused("{}", "").code->id, "HR0425");
}

TEST_F(Safetensors, AnyChangedBitOrLengthIsHarmless) {
  for_each_damage(kSound, 260, [&](const std::string& content) {
    use_damaged(folder_.write("a.safetensors", content), "safetensors");
  });
}

}  // namespace
}  // namespace headrace
