// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>

#include "headrace/base/registry.h"
#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

TEST(Open, AMissingPathSuggestsASimilarOne) {
  TemporaryFolder data;
  data.write("images/train/cat/1.jpg", "");
  const Error near = error_of([&] { open_source(data / "images/trian"); });
  EXPECT_EQ(near.code->id, "HR0402");
  EXPECT_EQ(near.code->kind, ErrorKind::kStorage);
  EXPECT_EQ(near.hint, "did you mean \"" + (data / "images/train") + "\"?");
  EXPECT_EQ(error_of([&] { open_source(data / "image/train"); }).hint,
            "did you mean \"" + (data / "images") + "\"?");
  EXPECT_EQ(error_of([&] { open_source(data / "other/train/"); }).hint,
            "there is no other in " + data.path());
  const Error relative = error_of([&] { open_source("not-there"); });
  EXPECT_NE(relative.what.find("(from /"), std::string::npos);
  EXPECT_EQ(relative.hint, "there is no not-there in " + std::filesystem::current_path().string());
  EXPECT_EQ(error_of([&] { open_source(""); }).code->id, "HR0402");
}

TEST(Open, AUrlIsNotALocalPath) {
  const Error error = error_of([] { open_source("ftp://host/train"); });
  EXPECT_NE(error.what.find("ftp:// is not a supported storage"), std::string::npos);
}

TEST(Open, RemotePathsSuggestNoLocalFiles) {
  EXPECT_EQ(error_of([] { open_source("memory://elsewhere/train"); }).hint,
            "there is no elsewhere in memory://");
}

TEST(Open, ATildeIsNotExpanded) {
  EXPECT_NE(error_of([] { open_source("~/train"); }).hint.find("expanduser"), std::string::npos);
}

TEST(Open, UnknownFormatsAreRejected) {
  TemporaryFolder data;
  EXPECT_EQ(error_of([&] { open_source(data.write("a.bin", "\0\0\0\0")); }).code->id, "HR0401");
  EXPECT_NE(error_of([&] { open_source(data.write("a.jpg", "x")); }).hint.find("hr.records(image="),
            std::string::npos);
}

TEST(Open, AFormatCanBeNamed) {
  TemporaryFolder data;
  data.write("a.jpg", "");
  const std::string list = data.write("mylist", "a.jpg 1\nb.jpg 2\n");
  EXPECT_EQ(error_of([&] { open_source(list); }).code->id, "HR0401");
  EXPECT_EQ(open_source(list, {{"format", std::string("list")}})->size(), 2);
  const Error error = error_of([&] { open_source(list, {{"format", std::string("foldr")}}); });
  EXPECT_EQ(error.hint, "did you mean \"folder\"?");
  EXPECT_EQ(error_of([&] { open_source(list, {{"format", std::string("folder")}}); }).code->id,
            "HR0403");
}

TEST(Open, ErrorsForWrongArgumentsNameTheRightOnes) {
  TemporaryFolder data;
  data.write("cat/1.jpg", "");
  const Error error = error_of([&] { open_source(data.path(), {{"clases", true}}); });
  EXPECT_NE(error.message().find("classes"), std::string::npos);
}

TEST(Formats, EachHasDocumentation) {
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    EXPECT_FALSE(format->doc.empty()) << format->name;
    EXPECT_TRUE(format->example.starts_with("hr.")) << format->name;
    for (const Param& param : format->params) EXPECT_FALSE(param.doc.empty()) << param.name;
  }
}

TEST(Formats, ErrorCodesAreUnique) {
  std::set<std::string_view> ids;
  for (const ErrorCode* code : Registry<ErrorCode>::all()) {
    EXPECT_TRUE(ids.insert(code->id).second) << code->id;
    EXPECT_FALSE(code->explanation.empty()) << code->id;
  }
}

TEST(FieldKinds, HaveNames) {
  EXPECT_EQ(name_of(FieldKind::kImage), "image");
  EXPECT_EQ(name_of(FieldKind::kBytes), "bytes");
}

}  // namespace
}  // namespace headrace
