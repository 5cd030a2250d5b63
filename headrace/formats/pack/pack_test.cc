// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "headrace/formats/format.h"
#include "headrace/formats/pack/pack_test_files.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/subset.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

PackOptions small_pages(int shards = 1) {
  PackOptions options;
  options.level = {};
  options.page_bytes = 8192;
  options.shards = shards;
  options.threads = 2;
  return options;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return std::string(exception.error().code->id);
  }
  return "";
}

// Compares all metadata and values of a source's records.
void expect_same_records(const Source& got, const Source& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  ASSERT_EQ(got.schema().size(), wanted.schema().size());
  EXPECT_EQ(got.classes(), wanted.classes());
  const std::vector<bool> all(wanted.schema().size(), true);
  for (int64_t i = 0; i < wanted.size(); ++i) {
    RecordData a, b;
    got.read({&i, 1}, all, {&a, 1});
    wanted.read({&i, 1}, all, {&b, 1});
    ASSERT_TRUE(a.result) << a.result.error().message();
    ASSERT_TRUE(b.result) << b.result.error().message();
    EXPECT_EQ(a.index, i);
    for (size_t field = 0; field < all.size(); ++field) {
      EXPECT_EQ(wanted.schema()[field].name, got.schema()[field].name);
      EXPECT_EQ(wanted.schema()[field].dtype, got.schema()[field].dtype);
      EXPECT_EQ(wanted.schema()[field].shape, got.schema()[field].shape);
      EXPECT_EQ(text_of(a.fields[field].bytes), text_of(b.fields[field].bytes)) << i;
      EXPECT_EQ(a.fields[field].scalar, b.fields[field].scalar);
      EXPECT_EQ(a.fields[field].shape, b.fields[field].shape);
    }
  }
}

TEST(Pack, RestoresAFoldersRecordsInOrderWithClassesAndKeys) {
  const TemporaryFolder place;
  write_pictures(place, "data", 40);
  const SourcePtr folder = open_source(place / "data");
  const std::string out = place / "data.hrpack";
  const PackReport report = pack({folder}, out, small_pages());
  EXPECT_EQ(report.summary.records, 40);
  EXPECT_GT(report.summary.pages, 3);
  EXPECT_EQ(report.summary.file_bytes, fs::file_size(out));
  EXPECT_FALSE(fs::exists(out + ".partial"));
  const SourcePtr packed = open_source(out);
  expect_same_records(*packed, *folder);
  EXPECT_EQ(packed->integer_column("label"), folder->integer_column("label"));
  for (int64_t i = 0; i < folder->size(); ++i) {
    EXPECT_EQ(place / ("data/" + packed->key(i)), folder->key(i));
  }
  EXPECT_NO_THROW(check_pack(out));
}

TEST(Pack, SupportsFieldsOfEveryKind) {
  const TemporaryFolder place;
  write_pictures(place, "data", 6);
  const SourcePtr folder = open_source(place / "data");
  PathColumn paths;
  TextColumn captions;
  for (int64_t i = 0; i < 6; ++i) {
    paths.paths.push_back(folder->key(i));
    captions.values.push_back(std::string(static_cast<size_t>(i) * 3, 'x') + "\n\xC3\xA4");
  }
  captions.values[4] = "";
  std::vector<float> narrow(6 * 2), wide(6 * 40);
  std::vector<uint8_t> masks(6 * 5 * 7);
  std::vector<int64_t> numbers(6);
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(i) / 3;
  for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = -static_cast<float>(i);
  for (size_t i = 0; i < masks.size(); ++i) masks[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i) - 3;
  const auto array = [](const void* data, DType dtype, Shape shape) {
    return ArrayColumn{.data = data, .dtype = dtype, .count = 6, .shape = std::move(shape)};
  };
  std::vector<Column> columns;
  columns.push_back({.name = "image", .values = paths});
  columns.push_back({.name = "caption", .values = captions});
  columns.push_back({.name = "point", .values = array(narrow.data(), DType::kFloat32, {2})});
  columns.push_back({.name = "wide", .values = array(wide.data(), DType::kFloat32, {4, 10})});
  columns.push_back({.name = "mask", .values = array(masks.data(), DType::kUInt8, {5, 7})});
  columns.push_back({.name = "label", .values = array(numbers.data(), DType::kInt64, {})});
  columns.push_back({.name = "nothing", .values = array(numbers.data(), DType::kFloat32, {0})});
  const SourcePtr source = records(std::move(columns));
  pack({source}, place / "x.hrpack", small_pages());
  expect_same_records(*open_source(place / "x.hrpack"), *source);
}

TEST(Pack, SupportsRecordsLongerThanAPage) {
  const TemporaryFolder place;
  const std::string head = "\xFF\xD8\xFF";
  for (int i = 0; i < 5; ++i) {
    const size_t bytes = i % 2 ? 100000 : 10;
    place.write("data/" + std::to_string(i) + ".jpg", head + std::string(bytes, char('a' + i)));
  }
  const SourcePtr folder = open_source(place / "data");
  pack({folder}, place / "x.hrpack", small_pages());
  expect_same_records(*open_source(place / "x.hrpack"), *folder);
}

TEST(Pack, IsOneSourceForAnyNumberOfShards) {
  const TemporaryFolder place;
  write_pictures(place, "data", 25);
  const SourcePtr folder = open_source(place / "data");
  PackOptions one_page;
  one_page.level = {};
  const PackReport whole = pack({folder}, place / "whole", one_page);
  for (int shards : {2, 3, 7, 30}) {
    const std::string out = place / ("shards" + std::to_string(shards));
    const PackReport report = pack({folder}, out, small_pages(shards));
    EXPECT_TRUE(fs::is_directory(out));
    const SourcePtr packed = open_source(out);
    expect_same_records(*packed, *folder);
    EXPECT_EQ(packed->integer_column("label"), folder->integer_column("label"));
    EXPECT_EQ(packed->fingerprint(), report.summary.fingerprint);
    EXPECT_EQ(packed->fingerprint(), whole.summary.fingerprint);
    EXPECT_EQ(summarize_pack(out).shards, shards);
  }
  EXPECT_EQ(open_source(place / "whole")->fingerprint(), whole.summary.fingerprint);
  EXPECT_EQ(open_source(place / ("shards3/" + shard_name(1)))->size(), 8);
}

TEST(Pack, FingerprintChangesWithBytesLabelsAndNames) {
  const TemporaryFolder place;
  write_pictures(place, "data", 8);
  std::vector<uint64_t> seen;
  const auto note = [&] {
    const std::string out = place / ("x" + std::to_string(seen.size()));
    pack({open_source(place / "data")}, out, small_pages());
    seen.push_back(open_source(out)->fingerprint());
  };
  note();
  note();
  EXPECT_EQ(seen[0], seen[1]);
  fs::rename(place / "data/ant/0.jpg", place / "data/ant/00.jpg");
  note();
  fs::rename(place / "data/ant/00.jpg", place / "data/bee/00.jpg");
  note();
  std::ofstream(place / "data/bee/00.jpg", std::ios::app) << "x";
  note();
  for (size_t i = 1; i < seen.size(); ++i) {
    for (size_t j = 1; j < i; ++j) EXPECT_NE(seen[i], seen[j]) << i << " " << j;
  }
}

TEST(Pack, JoinsSourcesAndTheirClasses) {
  const TemporaryFolder place;
  write_pictures(place, "disk1/train", 6);
  place.write("disk2/train/bat/1.jpg", "\xFF\xD8\xFF bat");
  place.write("disk2/train/cow/2.jpg", "\xFF\xD8\xFF cow");
  const SourcePtr a = open_source(place / "disk1/train"), b = open_source(place / "disk2/train");
  pack({a, b}, place / "x", small_pages());
  const SourcePtr packed = open_source(place / "x");
  EXPECT_EQ(packed->classes(), (std::vector<std::string>{"ant", "bat", "bee", "cow"}));
  EXPECT_EQ(packed->integer_column("label"), (std::vector<int64_t>{0, 0, 2, 2, 3, 3, 1, 3}));
  EXPECT_EQ(packed->key(0), "disk1/train/ant/0.jpg");
  EXPECT_EQ(packed->key(7), "disk2/train/cow/2.jpg");
}

TEST(Pack, RejectsSourcesThatDoNotMatch) {
  const TemporaryFolder place;
  write_pictures(place, "labeled", 6);
  place.write("flat/1.jpg", "\xFF\xD8\xFF");
  const SourcePtr labeled = open_source(place / "labeled"), flat = open_source(place / "flat");
  const auto pack_both = [&](const SourcePtr& other) {
    return error_of([&] { pack({labeled, other}, place / "x", small_pages()); });
  };
  EXPECT_EQ(pack_both(flat), "HR0449");
  const SourcePtr renamed =
      open_source(place / "labeled", {{"classes", std::vector<std::string>{"cow", "bee", "ant"}}});
  EXPECT_EQ(pack_both(renamed), "HR0449");
  EXPECT_EQ(error_of([&] { pack({}, place / "x", small_pages()); }), "HR0449");
  EXPECT_FALSE(fs::exists(place / "x"));
}

TEST(Pack, MayBeMadeFromASubsetOrAPack) {
  const TemporaryFolder place;
  write_pictures(place, "data", 9);
  const SourcePtr some = subset(open_source(place / "data"), {8, 3, 3, 0});
  pack({some}, place / "some", small_pages());
  const SourcePtr packed = open_source(place / "some");
  expect_same_records(*packed, *some);
  pack({packed}, place / "again", small_pages(2));
  const SourcePtr again = open_source(place / "again");
  expect_same_records(*again, *some);
  EXPECT_EQ(again->fingerprint(), packed->fingerprint());
  EXPECT_EQ(again->key(1), packed->key(1));
}

TEST(Pack, OpensWithTheClassesOfAnother) {
  const TemporaryFolder place;
  write_pictures(place, "data", 9);
  pack({open_source(place / "data")}, place / "x", small_pages());
  const std::vector<std::string> names = {"zoo", "cow", "bee", "ant"};
  const SourcePtr renamed = open_source(place / "x", {{"classes", names}});
  EXPECT_EQ(renamed->classes(), names);
  const SourcePtr folder = open_source(place / "data", {{"classes", names}});
  EXPECT_EQ(renamed->integer_column("label"), folder->integer_column("label"));
  EXPECT_EQ(
      error_of([&] { open_source(place / "x", {{"classes", std::vector<std::string>{"ant"}}}); }),
      "HR0406");
}

TEST(Pack, ReplacesOnlyPacksAndOnlyOnRequest) {
  const TemporaryFolder place;
  write_pictures(place, "data", 9);
  const SourcePtr folder = open_source(place / "data");
  pack({folder}, place / "x", small_pages());
  EXPECT_EQ(error_of([&] { pack({folder}, place / "x", small_pages()); }), "HR0446");
  PackOptions options = small_pages(3);
  options.overwrite = true;
  pack({folder}, place / "x", options);
  EXPECT_TRUE(fs::is_directory(place / "x"));
  pack({folder}, place / "x", options);
  expect_same_records(*open_source(place / "x"), *folder);
  options.shards = 1;
  pack({folder}, place / "x", options);
  expect_same_records(*open_source(place / "x"), *folder);
  EXPECT_EQ(error_of([&] { pack({folder}, place / "data", options); }), "HR0446");
  EXPECT_FALSE(fs::exists(place / "x.old"));
}

TEST(Pack, KeepsOtherFilesInTheFolderOfAPack) {
  const TemporaryFolder place;
  write_pictures(place, "data", 9);
  const SourcePtr folder = open_source(place / "data");
  PackOptions options = small_pages(2);
  options.overwrite = true;
  pack({folder}, place / "x", options);
  place.write("x/notes.txt", "mine");
  EXPECT_EQ(error_of([&] { pack({folder}, place / "x", options); }), "HR0446");
  EXPECT_EQ(content_of(place / "x/notes.txt"), "mine");
}

TEST(Pack, IsCompleteDespiteConcurrentWriters) {
  const TemporaryFolder place;
  write_pictures(place, "data", 20);
  const SourcePtr folder = open_source(place / "data");
  for (const int shards : {1, 2}) {
    const std::string out = place / ("x" + std::to_string(shards));
    std::atomic<int> done{0};
    const auto write = [&] {
      PackOptions options = small_pages(shards);
      options.threads = 1;
      while (done < 60) {
        const std::string error = error_of([&] { pack({folder}, out, options); });
        if (!error.empty()) {
          EXPECT_TRUE(error == "HR0448" || error == "HR0446") << error;
          continue;
        }
        EXPECT_EQ(open_source(out)->size(), 20);
        const std::string away = place / ("away" + std::to_string(++done));
        fs::rename(out, away);
        fs::remove_all(away);
      }
    };
    std::thread first(write), second(write), third(write);
    first.join();
    second.join();
    third.join();
  }
}

TEST(Pack, ResumesAfterAnInterruptionToTheSameBytes) {
  const TemporaryFolder place;
  write_pictures(place, "data", 60);
  const SourcePtr folder = open_source(place / "data");
  for (int shards : {1, 3}) {
    const std::string whole = place / ("whole" + std::to_string(shards));
    const std::string out = place / ("out" + std::to_string(shards));
    pack({folder}, whole, small_pages(shards));
    for (int64_t at : {20, 21, 45}) {
      const auto interrupt = [&](int64_t done, int64_t) {
        if (done >= at) throw std::runtime_error("interrupted");
      };
      EXPECT_THROW(pack({folder}, out, small_pages(shards), interrupt), std::runtime_error);
      EXPECT_FALSE(fs::exists(out));
    }
    const PackReport report = pack({folder}, out, small_pages(shards));
    EXPECT_GT(report.resumed_records, 20);
    EXPECT_LT(report.resumed_records, 60);
    EXPECT_EQ(report.summary.records, 60);
    EXPECT_EQ(files_below(out), files_below(whole));
  }
}

TEST(Pack, StartsOverIfTheInterruptedRunHadOtherRecords) {
  const TemporaryFolder place;
  write_pictures(place, "data", 60);
  const auto interrupt = [&](int64_t done, int64_t) {
    if (done >= 30) throw std::runtime_error("interrupted");
  };
  EXPECT_THROW(pack({open_source(place / "data")}, place / "x", small_pages(), interrupt),
               std::runtime_error);
  fs::remove(place / "data/ant/0.jpg");
  const PackReport report = pack({open_source(place / "data")}, place / "x", small_pages());
  EXPECT_EQ(report.resumed_records, 0);
  expect_same_records(*open_source(place / "x"), *open_source(place / "data"));
}

TEST(Pack, ReportsWhichRecordCouldNotBeRead) {
  const TemporaryFolder place;
  write_pictures(place, "data", 9);
  const SourcePtr folder = open_source(place / "data");
  fs::remove(place / "data/bee/1.jpg");
  try {
    pack({folder}, place / "x", small_pages());
    FAIL();
  } catch (const Exception& exception) {
    EXPECT_EQ(exception.error().code->id, "HR0201");
    EXPECT_EQ(exception.error().where.record, 3);
  }
}

TEST(Pack, MayBeEmpty) {
  const TemporaryFolder place;
  const std::vector<int64_t> none;
  std::vector<Column> columns;
  columns.push_back(
      {.name = "x", .values = ArrayColumn{.data = none.data(), .dtype = DType::kInt64}});
  pack({records(std::move(columns))}, place / "x", small_pages());
  EXPECT_EQ(open_source(place / "x")->size(), 0);
}

}  // namespace
}  // namespace headrace
