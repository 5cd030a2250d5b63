// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/opening/opened_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/formats/shards/shard_files.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/combined/combined.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Given = std::map<std::string, ParamValue>;

// A valid value of a parameter that is not its default.
ParamValue another_value(const Param& param) {
  const auto* truth = std::get_if<bool>(&param.fallback);
  switch (param.type) {
    case ParamType::kBool:
      return !(truth && *truth);
    case ParamType::kInt:
      return param.maximum < 3 ? static_cast<int64_t>(param.minimum) : int64_t{3};
    case ParamType::kFloat:
      return 3.000000001;
    case ParamType::kString:
      for (const std::string_view choice : param.choices) {
        const auto* text = std::get_if<std::string>(&param.fallback);
        if (!text || *text != choice) return std::string(choice);
      }
      return std::string("/another");
    case ParamType::kDType:
      return DType::kFloat16;
    case ParamType::kInts:
      return std::vector<int64_t>{7, 5};
    case ParamType::kFloats:
      return std::vector<double>{0.25};
    case ParamType::kStrings:
      return std::vector<std::string>{"b", "a"};
    default:
      ADD_FAILURE() << param.name << ": formats have no parameters of this type";
      return {};
  }
}

SourcePtr numbers() {
  return records({{.name = "text", .values = TextColumn{{"one", "two"}}, .kind = {}}});
}

class EachParameter : public ::testing::Test {
 protected:
  SourcePtr opened(const FormatRecord& format, const Given& given,
                   const std::vector<std::string>& kinds = {}) {
    return opened_source(numbers(), format, data.path(),
                         Arguments(format.name, format.params, given), kinds);
  }
  TemporaryFolder data;
};

TEST_F(EachParameter, ChangesTheIdentity) {
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    const std::string usual = opened(*format, {})->identity();
    EXPECT_EQ(opened(*format, {})->identity(), usual) << format->name;
    EXPECT_NE(opened(*format, {}, {"text=bytes"})->identity(), usual) << format->name;
    for (const Param& param : format->params) {
      const Given given{{std::string(param.name), another_value(param)}};
      EXPECT_NE(opened(*format, given)->identity(), usual) << format->name << " " << param.name;
    }
  }
}

TEST_F(EachParameter, ThatAffectsRecordsChangesTheFingerprint) {
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    EXPECT_EQ(opened(*format, {})->fingerprint(), numbers()->fingerprint()) << "its own";
    for (const Param& param : format->params) {
      const Given given{{std::string(param.name), another_value(param)}};
      const bool changed = opened(*format, given)->fingerprint() != numbers()->fingerprint();
      EXPECT_EQ(changed, param.decides == Affects::kRecords) << format->name << " " << param.name;
    }
  }
}

TEST_F(EachParameter, SetToItsDefaultEqualsTheDefault) {
  for (const FormatRecord* format : Registry<FormatRecord>::all()) {
    for (const Param& param : format->params) {
      if (param.fallback.index() == 0) continue;
      const SourcePtr said = opened(*format, {{std::string(param.name), param.fallback}});
      EXPECT_EQ(said->fingerprint(), numbers()->fingerprint()) << format->name << param.name;
      EXPECT_EQ(said->identity(), opened(*format, {})->identity()) << format->name << param.name;
    }
  }
}

class Identity : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("HEADRACE_CACHE", "", 1);
    before = fs::current_path();
    for (const char* run : {"one/train/", "two/train/"}) {
      data.write(std::string(run) + "cat/1.jpg", "");
      data.write(std::string(run) + "dog/2.jpg", "");
    }
  }
  void TearDown() override { fs::current_path(before); }
  TemporaryFolder data;
  fs::path before;
};

TEST_F(Identity, IsEqualForSourcesOpenedInTheSameWay) {
  EXPECT_EQ(open_source(data / "one/train")->identity(),
            open_source(data / "one/train")->identity());
  fs::current_path(data / "one");
  EXPECT_EQ(open_source("./train")->identity(), open_source(data / "one/train")->identity());
}

TEST_F(Identity, DiffersIfARelativePathMeansAnotherFolder) {
  fs::current_path(data / "one");
  const SourcePtr one = open_source("train");
  fs::current_path(data / "two");
  const SourcePtr two = open_source("train");
  EXPECT_EQ(one->fingerprint(), two->fingerprint()) << "a copy elsewhere";
  EXPECT_NE(one->identity(), two->identity());
  EXPECT_EQ(one->key(0), data / "one/train/cat/1.jpg") << "what it means stays";
}

TEST_F(Identity, DiffersIfTheFolderChanged) {
  const std::string before = open_source(data / "one/train")->identity();
  fs::rename(data / "one/train/cat/1.jpg", data / "one/train/cat/3.jpg");
  EXPECT_NE(open_source(data / "one/train")->identity(), before);
}

TEST_F(Identity, OfSourcesNotOpenedByPathIsUnique) {
  const SourcePtr one = numbers(), two = numbers();
  EXPECT_EQ(one->fingerprint(), two->fingerprint());
  EXPECT_NE(one->identity(), two->identity());
  EXPECT_EQ(one->identity(), one->identity());
  const SourcePtr opened = open_source(data / "one/train");
  const Kinds mask{{"image", FieldKind::kMask}};
  EXPECT_NE(with_kinds(opened, mask)->identity(), opened->identity());
  EXPECT_NE(concat({opened, opened})->identity(), concat({opened, opened})->identity());
}

TEST_F(Identity, OfASubsetDependsOnItsRecords) {
  const SourcePtr opened = open_source(data / "one/train");
  EXPECT_EQ(subset(opened, {1})->identity(), subset(opened, {1})->identity());
  EXPECT_NE(subset(opened, {1})->identity(), subset(opened, {0})->identity());
  EXPECT_NE(subset(opened, {1})->identity(),
            subset(open_source(data / "two/train"), {1})->identity());
}

TEST_F(Identity, PathsThatAreOptionsAreMadeAbsolute) {
  fs::current_path(data / "one");
  data.write("one/list.csv", "path,label,x\ncat/1.jpg,a,1\ndog/2.jpg,b,2\n");
  const SourcePtr source = open_source("list.csv", {{"root", std::string("train")}});
  fs::current_path(data / "two");
  EXPECT_EQ(source->key(0), data / "one/train/cat/1.jpg");
}

TEST(AbsoluteForm, KeepsPatternsAndFolders) {
  TemporaryFolder data;
  const fs::path before = fs::current_path();
  data.write("[odd] {x}/a-0.tar", "");
  data.write("[odd] {x}/a-1.tar", "");
  fs::current_path(data / "[odd] {x}");
  const std::string here = fs::current_path().string();
  EXPECT_EQ(absolute_form("a-0.tar"), here + "/a-0.tar");
  EXPECT_EQ(absolute_form("."), here);
  EXPECT_EQ(absolute_form("./a-*.tar\n/b"), here + "/a-*.tar\n/b");
  EXPECT_EQ(absolute_form("memory://x/a"), "memory://x/a");
  for (const char* pattern : {"a-*.tar", "a-{0..1}.tar", "a-[01].tar"}) {
    EXPECT_EQ(shard_files(absolute_form(pattern)).size(), 2u) << pattern;
  }
  fs::current_path(before);
}

}  // namespace
}  // namespace headrace
