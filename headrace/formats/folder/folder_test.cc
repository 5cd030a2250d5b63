// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include "headrace/formats/folder/listing_cache.h"
#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

class Folder : public testing::Test {
 protected:
  void SetUp() override { ::setenv("HEADRACE_CACHE", (cache / "headrace").c_str(), 1); }
  void TearDown() override { ::unsetenv("HEADRACE_CACHE"); }

  SourcePtr open(const std::map<std::string, ParamValue>& arguments = {}) const {
    return open_source(data.path(), arguments);
  }
  Error refusal(const std::map<std::string, ParamValue>& arguments = {}) const {
    return error_of([&] { open(arguments); });
  }
  // Keys start at the root.
  Names keys(const Source& source) const {
    Names out;
    for (int64_t i = 0; i < source.size(); ++i) {
      out.push_back(source.key(i).substr(data.path().size() + 1));
    }
    return out;
  }
  TemporaryFolder data, cache;
};

// The expected lists were produced by torchvision 0.29's ImageFolder for this tree.
TEST_F(Folder, RecordsAndOrderEqualThoseOfImageFolder) {
  for (const char* name :
       {"b/2.jpg", "b/10.jpg", "b/x/1.png", "b/x-y/1.png", "b/x/z/0.jpg", "b-c/1.jpg", "B/1.JPEG",
        "a b/1.bmp", "\xC3\xA4/1.webp", "b/readme.txt", "top.jpg", "b/X.jpg"}) {
    data.write(name, "");
  }
  const SourcePtr source = open();
  EXPECT_EQ(source->classes(), (Names{"B", "a b", "b", "b-c", "\xC3\xA4"}));
  EXPECT_EQ(keys(*source),
            (Names{"B/1.JPEG", "a b/1.bmp", "b/10.jpg", "b/2.jpg", "b/X.jpg", "b/x/1.png",
                   "b/x-y/1.png", "b/x/z/0.jpg", "b-c/1.jpg", "\xC3\xA4/1.webp"}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{0, 1, 2, 2, 2, 2, 2, 2, 3, 4}));
  EXPECT_NE(source->description().find("1 image next to the class folders ignored"),
            std::string::npos);
}

TEST_F(Folder, ReadsFileAndLabel) {
  data.write("cat/1.jpg", "meow");
  data.write("dog/1.jpg", "a longer bark");
  data.write("dog/2.jpg", "");
  const SourcePtr source = open_source(data.path() + "///");
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->read_style(), ReadStyle::kFiles);
  ASSERT_EQ(source->schema().size(), 2u);
  EXPECT_EQ(source->schema()[0].kind, FieldKind::kImage);
  EXPECT_TRUE(source->schema()[0].encoded);
  EXPECT_EQ(source->schema()[1].name, "label");
  std::vector<RecordData> out(3);
  const std::vector<int64_t> indices{1, 0, 2};
  source->read(indices, {true, true}, out);
  const auto text = [](const RecordData& record) {
    return std::string(record.fields[0].bytes.begin(), record.fields[0].bytes.end());
  };
  EXPECT_EQ(text(out[0]), "a longer bark");
  EXPECT_EQ(text(out[1]), "meow");
  EXPECT_EQ(text(out[2]), "");
  EXPECT_EQ(out[0].fields[1].scalar, 1);
  EXPECT_EQ(out[1].fields[1].scalar, 0);
  EXPECT_EQ(out[0].index, 1);
  for (const RecordData& record : out) EXPECT_TRUE(record.result);
}

TEST_F(Folder, UnrequestedFieldsAreNotRead) {
  data.write("cat/1.jpg", "meow");
  const SourcePtr source = open();
  fs::remove(data / "cat/1.jpg");
  std::vector<RecordData> out(1);
  source->read(std::vector<int64_t>{0}, {false, true}, out);
  EXPECT_TRUE(out[0].result);
  EXPECT_TRUE(out[0].fields[0].bytes.empty());
}

TEST_F(Folder, EachRecordHasItsOwnResult) {
  for (const char* name : {"c/1.jpg", "c/2.jpg", "c/3.jpg"}) data.write(name, "x");
  const SourcePtr source = open();
  fs::remove(data / "c/2.jpg");
  std::vector<RecordData> out(3);
  const std::vector<int64_t> indices{0, 1, 2};
  source->read(indices, {true, true}, out);
  EXPECT_TRUE(out[0].result);
  ASSERT_FALSE(out[1].result);
  EXPECT_EQ(out[1].result.error().code->id, "HR0201");
  EXPECT_EQ(out[1].result.error().where.file, data / "c/2.jpg");
  EXPECT_EQ(out[1].result.error().where.record, 1);
  EXPECT_TRUE(out[2].result);
  data.write("c/2.jpg", "back");  // the same RecordData can be reused
  source->read(indices, {true, true}, out);
  EXPECT_TRUE(out[1].result);
  EXPECT_EQ(out[1].fields[0].bytes.size(), 4u);
}

TEST_F(Folder, BuffersKeepTheirMemory) {
  data.write("c/1.jpg", std::string(10000, 'x'));
  data.write("c/2.jpg", "y");
  const SourcePtr source = open();
  std::vector<RecordData> out(1);
  source->read(std::vector<int64_t>{0}, {true, true}, out);
  const uint8_t* memory = out[0].fields[0].bytes.data();
  source->read(std::vector<int64_t>{1}, {true, true}, out);
  EXPECT_EQ(out[0].fields[0].bytes.data(), memory);
}

TEST_F(Folder, WithoutClassFoldersHasNoLabel) {
  data.write("b.jpg", "");
  data.write("a.jpg", "");
  fs::create_directory(data / "empty");
  const SourcePtr source = open();
  EXPECT_EQ(source->schema().size(), 1u);
  EXPECT_EQ(keys(*source), (Names{"a.jpg", "b.jpg"}));
  EXPECT_TRUE(source->integer_column("label").empty());
  EXPECT_TRUE(source->classes().empty());
  EXPECT_EQ(source->description(), "folder " + data.path() + " (2 records)");
  EXPECT_EQ(refusal({{"classes", Names{"a"}}}).code->id, "HR0409");
}

TEST_F(Folder, GivenClassesDetermineTheNumbers) {
  for (const char* name : {"dog/1.jpg", "ant/1.jpg"}) data.write(name, "");
  const SourcePtr source = open({{"classes", Names{"dog", "cat", "ant"}}});
  EXPECT_EQ(keys(*source), (Names{"ant/1.jpg", "dog/1.jpg"}));
  EXPECT_EQ(source->integer_column("label"), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(source->classes(), (Names{"dog", "cat", "ant"}));
}

TEST_F(Folder, UnlistedClassesAreRejectedByName) {
  for (const char* name : {"dog/1.jpg", "ant/1.jpg", "bee/1.jpg", "notes/readme.txt"}) {
    data.write(name, "");
  }
  const Error error = refusal({{"classes", Names{"dog"}}});
  EXPECT_EQ(error.code->id, "HR0406");
  EXPECT_EQ(error.code->kind, ErrorKind::kConfig);
  EXPECT_NE(error.what.find("'ant' and 'bee'"), std::string::npos);
  EXPECT_EQ(refusal({{"classes", Names{}}}).code->id, "HR0406");
  EXPECT_NE(refusal({{"classes", Names{"dog", "ant", "bee", "dog"}}}).what.find("'dog' twice"),
            std::string::npos);
}

TEST_F(Folder, OfSplitsIsRejectedWithASuggestion) {
  const std::vector<Names> roots = {{"train", "val"},
                                    {"Train", "TEST"},
                                    {"training", "validation"},
                                    {"valid", "testing", "dev"},
                                    {"train"},
                                    {"train2017", "val2017", "annotations"},
                                    {"train", "val", "meta"}};
  for (const Names& folders : roots) {
    TemporaryFolder root;
    for (const std::string& name : folders) root.write(name + "/cat/1.jpg", "");
    const Error error = error_of([&] { open_source(root.path()); });
    EXPECT_EQ(error.code->id, "HR0405");
    EXPECT_EQ(error.code->kind, ErrorKind::kConfig);
    EXPECT_NE(error.hint.find("open " + root.path() + "/"), std::string::npos) << error.hint;
    EXPECT_TRUE(open_source(root / folders[0]));
  }
}

TEST_F(Folder, OfSplitsIsAlsoRejectedOneLevelAbove) {
  data.write("imagenet/train/cat/1.jpg", "");
  data.write("imagenet/val/cat/1.jpg", "");
  EXPECT_NE(refusal().hint.find(data / "imagenet/train"), std::string::npos);
}

TEST_F(Folder, AClassMayBeCalledTrain) {
  data.write("train/1.jpg", "");
  data.write("bus/1.jpg", "");
  EXPECT_EQ(open()->classes(), (Names{"bus", "train"}));
  data.write("test/1.jpg", "");
  EXPECT_EQ(refusal().code->id, "HR0405");
  EXPECT_EQ(open({{"classes", Names{"bus", "train", "test"}}})->size(), 3);
}

TEST_F(Folder, AClassWithoutImagesIsRejectedUnlessDeclared) {
  data.write("ant/1.jpg", "");
  data.write("cat/1.jpg", "");
  data.write("bee/readme.txt", "");
  const Error error = refusal();
  EXPECT_EQ(error.code->id, "HR0407");
  EXPECT_NE(error.what.find("'bee'"), std::string::npos);
  EXPECT_EQ(open({{"allow_empty", true}})->integer_column("label"), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(open({{"classes", Names{"ant", "cat"}}})->integer_column("label"),
            (std::vector<int64_t>{0, 1}));
}

TEST_F(Folder, NextToCocoAnnotationsSuggestsTheFileToOpen) {
  data.write("images2017/1.jpg", "");
  data.write("annotations/instances.json", R"({"images": [{"file_name": "1.jpg"}]})");
  EXPECT_EQ(refusal().code->id, "HR0419");
  EXPECT_NE(refusal().hint.find("/annotations/instances.json\", images=\"" + (data / "images2017")),
            std::string::npos);
}

TEST_F(Folder, WithoutImagesListsTheFilesFound) {
  EXPECT_EQ(refusal().code->id, "HR0404");
  EXPECT_NE(refusal().hint.find("empty"), std::string::npos);
  data.write("a/notes.txt", "x");
  data.write("b/notes.txt", "x");
  EXPECT_NE(refusal().what.find("looked at 2 other files and 2 folders"), std::string::npos);
}

TEST_F(Folder, FingerprintDependsOnNamesAndLabelsOnly) {
  const auto print = [](const TemporaryFolder& folder) {
    return open_source(folder.path())->fingerprint();
  };
  TemporaryFolder elsewhere;
  for (const TemporaryFolder* folder : {&data, &elsewhere}) {
    folder->write("cat/1.jpg", "");
    folder->write("dog/1.jpg", "");
  }
  std::set<uint64_t> prints{print(data)};
  EXPECT_EQ(print(elsewhere), print(data));
  EXPECT_EQ(open({{"classes", Names{"cat", "dog"}}})->fingerprint(), print(data));
  const auto is_new = [&](uint64_t value) { return prints.insert(value).second; };
  EXPECT_TRUE(is_new(open({{"classes", Names{"dog", "cat"}}})->fingerprint()));
  EXPECT_TRUE(is_new(open({{"classes", Names{"cat", "dog", "elk"}}})->fingerprint()));
  data.write("dog/2.jpg", "");
  EXPECT_TRUE(is_new(print(data)));
  fs::rename(data / "dog/2.jpg", data / "cat/2.jpg");
  EXPECT_TRUE(is_new(print(data)));
  fs::rename(data / "cat/2.jpg", data / "cat/12.jpg");
  EXPECT_TRUE(is_new(print(data)));
}

TEST_F(Folder, FingerprintIsTheSameInEveryRun) {  // stored in resume states
  data.write("cat/1.jpg", "");
  data.write("dog/2.jpg", "");
  // From the definition of Fingerprint and mix64, computed independently in Python.
  EXPECT_EQ(open()->fingerprint(), 0x324398143b5d4b17u);
}

// A folder that is worth caching.
class LargeFolder : public Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    for (int i = 0; i < 5000; ++i) {
      data.write((i % 2 ? "odd/" : "even/") + std::to_string(i) + ".jpg", "");
    }
    age();
  }
  void age() const {
    for (const std::string& folder : {data.path(), data / "odd", data / "even"}) {
      fs::last_write_time(folder, fs::last_write_time(folder) - std::chrono::hours(1));
    }
  }
  std::string entry() const {
    return cache / "headrace/" + listing_cache_name(fs::canonical(data.path()));
  }
};

TEST_F(LargeFolder, IsListedOnce) {
  const uint64_t fresh = open()->fingerprint();
  ASSERT_TRUE(fs::exists(entry()));
  bool listed = false;
  const Progress progress = [&](int64_t, int64_t) { listed = true; };
  EXPECT_EQ(open_source(data.path(), {}, progress)->fingerprint(), fresh);
  EXPECT_FALSE(listed);
  data.write("odd/new.jpg", "");
  EXPECT_EQ(open_source(data.path(), {}, progress)->size(), 5001);
  EXPECT_TRUE(listed);
}

TEST_F(LargeFolder, RecoversFromADamagedEntry) {
  const uint64_t fresh = open()->fingerprint();
  const auto size = fs::file_size(entry());
  for (auto cut : {size / 2, size - 1, decltype(size){0}}) {
    fs::resize_file(entry(), cut);
    EXPECT_EQ(open()->fingerprint(), fresh);
    EXPECT_EQ(fs::file_size(entry()), size);  // was rewritten
  }
}

TEST_F(LargeFolder, OpensWithoutACache) {
  ::setenv("HEADRACE_CACHE", data.write("odd/file", "x").c_str(), 1);  // cannot be a folder
  fs::remove(data / "odd/file");
  EXPECT_EQ(open()->size(), 5000);
  ::setenv("HEADRACE_CACHE", "", 1);
  EXPECT_EQ(open()->size(), 5000);
  ::setenv("HEADRACE_CACHE", "/proc/none", 1);
  EXPECT_EQ(open()->size(), 5000);
}

TEST_F(LargeFolder, CachedListingsAreCheckedForSplitsToo) {
  open();
  fs::rename(data / "odd", data / "train");
  fs::rename(data / "even", data / "val");
  fs::last_write_time(data.path(), fs::last_write_time(data.path()) - std::chrono::hours(2));
  const std::map<std::string, ParamValue> meant{{"classes", Names{"train", "val"}}};
  EXPECT_EQ(open(meant)->size(), 5000);
  EXPECT_TRUE(fs::exists(entry()));
  EXPECT_EQ(refusal().code->id, "HR0405");
}

TEST_F(LargeFolder, ManyThreadsMayReadAtOnce) {
  const SourcePtr source = open();
  std::vector<std::jthread> readers;
  for (int thread = 0; thread < 4; ++thread) {
    readers.emplace_back([&source, thread] {
      std::vector<RecordData> out(8);
      std::vector<int64_t> indices(8);
      for (int64_t i = thread; i + 8 < source->size(); i += 97) {
        for (int64_t j = 0; j < 8; ++j) indices[j] = i + j;
        source->read(indices, {true, true}, out);
        for (size_t j = 0; j < 8; ++j) {
          EXPECT_TRUE(out[j].result);
          EXPECT_EQ(out[j].fields[1].scalar,
                    source->key(indices[j]).find("/odd/") != std::string::npos);
        }
      }
    });
  }
}

}  // namespace
}  // namespace headrace
