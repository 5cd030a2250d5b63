// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>

#include "headrace/formats/format.h"
#include "headrace/formats/pack/pack.h"
#include "headrace/formats/pack/pack_test_damage.h"
#include "headrace/formats/pack/pack_test_files.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string image, key;
  int64_t label;
  bool operator==(const Row&) const = default;
};

// The record, or its error.
Result<Row> row_of(const Source& source, int64_t index) {
  RecordData data;
  source.read({&index, 1}, std::vector<bool>(source.schema().size(), true), {&data, 1});
  if (!data.result) return std::move(data.result.error());
  return Row{text_of(data.fields.at(0).bytes), source.key(index), data.fields.at(1).scalar};
}

std::vector<Row> rows_of(const Source& source) {
  std::vector<Row> rows;
  for (int64_t i = 0; i < source.size(); ++i) rows.push_back(std::move(*row_of(source, i)));
  return rows;
}

struct Opened {
  SourcePtr source;
  std::string code, what;
};

Opened open_pack_at(const std::string& path, bool recover = false) {
  try {
    return {open_source(path, {{"format", std::string("pack")}, {"recover", recover}}), {}, {}};
  } catch (const Exception& exception) {
    EXPECT_NE(exception.error().code->kind, ErrorKind::kConfig) << exception.what();
    EXPECT_FALSE(exception.error().hint.empty()) << exception.what();
    return {.source = nullptr,
            .code = std::string(exception.error().code->id),
            .what = exception.what()};
  }
}

class DamagedPack : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(place_, "data", 24);
    PackOptions options;
    options.level = {};
    options.page_bytes = 8192;
    pack({open_source(place_ / "data")}, place_ / "sound", options);
    const std::string content = content_of(place_ / "sound");
    sound_.assign(content.begin(), content.end());
    rows_ = rows_of(*open_source(place_ / "sound"));
    ASSERT_EQ(rows_.size(), 24u);
  }

  std::string write(std::span<const uint8_t> bytes) const {
    return place_.write("damaged", text_of(bytes));
  }

  // Every record that is delivered is correct.
  void expect_no_wrong_record(const SourcePtr& source, const std::string& about) const {
    if (!source) return;
    ASSERT_LE(source->size(), static_cast<int64_t>(rows_.size())) << about;
    for (int64_t i = 0; i < source->size(); ++i) {
      const Result<Row> row = row_of(*source, i);
      if (row) {
        EXPECT_EQ(*row, rows_[static_cast<size_t>(i)]) << about << " record " << i;
      } else {
        EXPECT_EQ(row.error().where.record, i);
      }
    }
  }

  // For packs with forged contents, only memory safety is required.
  static void use(const SourcePtr& source) {
    if (!source) return;
    source->classes();
    source->integer_column("label");
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 100); ++i) {
      (void)row_of(*source, i);
    }
  }

  const TemporaryFolder place_;
  std::vector<uint8_t> sound_;
  std::vector<Row> rows_;
};

TEST_F(DamagedPack, IfTruncatedAnywhereIsAnErrorWithAHint) {
  for (size_t part = 0; part < 64; ++part) {
    const size_t size = sound_.size() * part / 64;
    const std::string path = write(std::span(sound_).first(size));
    const Opened opened = open_pack_at(path);
    EXPECT_FALSE(opened.source) << part;
    EXPECT_EQ(opened.code, size < 4096 ? "HR0440" : "HR0442") << part;
    EXPECT_EQ(opened.what.find("recover=True") != std::string::npos, size >= 4096);
    EXPECT_NE(opened.what.find(path), std::string::npos);
  }
}

TEST_F(DamagedPack, IfTruncatedOpensUpToItsLastCompletePageOnRequest) {
  size_t most = 0, least = rows_.size();
  for (size_t part = 8; part < 64; ++part) {
    const size_t size = sound_.size() * part / 64;
    const Opened opened = open_pack_at(write(std::span(sound_).first(size)), /*recover=*/true);
    if (size < 4096) continue;
    ASSERT_TRUE(opened.source) << opened.what;
    const std::vector<Row> got = rows_of(*opened.source);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), rows_.begin()));
    most = std::max(most, got.size());
    least = std::min(least, got.size());
    const std::string says = opened.source->description();
    EXPECT_NE(says.find("recovered"), std::string::npos) << says;
    if (got.size() < rows_.size()) {
      const std::string missing = "records " + std::to_string(got.size()) + " to 23 are missing";
      EXPECT_NE(says.find(missing), std::string::npos) << says;
    }
  }
  EXPECT_EQ(most, 24u);
  EXPECT_LT(least, 10u);
}

TEST_F(DamagedPack, WithAnyByteChangedNeverGivesAWrongRecord) {
  for (size_t at = 0; at < sound_.size(); at += at < 4096 || at % 8192 < 400 ? 1 : 37) {
    std::vector<uint8_t> damaged = sound_;
    damaged[at] ^= static_cast<uint8_t>(1 << at % 8);
    const std::string path = write(damaged), about = "byte " + std::to_string(at);
    expect_no_wrong_record(open_pack_at(path).source, about);
    expect_no_wrong_record(open_pack_at(path, true).source, about + " recovered");
  }
}

TEST_F(DamagedPack, RecordErrorNamesRecordFileAndOffset) {
  std::vector<uint8_t> damaged = sound_;
  const size_t offset = text_of(sound_).find(rows_[7].image);
  damaged[offset + 5] ^= 4;
  const Opened opened = open_pack_at(write(damaged));
  ASSERT_TRUE(opened.source);
  for (int64_t i = 0; i < 24; ++i) {
    const Result<Row> row = row_of(*opened.source, i);
    EXPECT_EQ(row.has_value(), i != 7);
    if (row) continue;
    EXPECT_EQ(row.error().code->id, "HR0444");
    EXPECT_EQ(row.error().where.file, place_ / "damaged");
    EXPECT_EQ(row.error().where.member, rows_[7].key);
    EXPECT_EQ(row.error().where.record, 7);
    EXPECT_EQ(row.error().where.offset, static_cast<int64_t>(offset));
  }
  const SourcePtr unverified = open_source(place_ / "damaged", {{"verify", false}});
  EXPECT_TRUE(row_of(*unverified, 7).has_value());
}

TEST_F(DamagedPack, WithADamagedIndexIsReadByItsPages) {
  std::vector<uint8_t> damaged = sound_;
  damaged[sound_.size() - kPackTailBytes - 5] ^= 1;
  const std::string path = write(damaged);
  EXPECT_EQ(open_pack_at(path).code, "HR0443");
  const Opened opened = open_pack_at(path, true);
  ASSERT_TRUE(opened.source) << opened.what;
  EXPECT_EQ(rows_of(*opened.source), rows_);
  EXPECT_EQ(opened.source->fingerprint(), open_source(place_ / "sound")->fingerprint());
}

TEST_F(DamagedPack, APageThatContradictsTheIndexIsFound) {
  EXPECT_NO_THROW(check_pack(place_ / "sound"));
  std::vector<uint8_t> damaged = sound_;
  const size_t page = number_at<uint32_t>(sound_, 12);
  damaged[page + kPageHeaderBytes + 1] ^= 1;
  correct_pages(damaged);
  const std::string path = write(damaged);
  EXPECT_TRUE(open_pack_at(path).source);
  EXPECT_THROW(check_pack(path), Exception);
}

// Replaces each number of the header, the tail, the directory, the pages and the tables by an
// extreme value, with valid checksums.
TEST_F(DamagedPack, WithForgedMetadataIsReadSafely) {
  std::vector<size_t> places;
  const size_t page = number_at<uint32_t>(sound_, 12), tail = sound_.size() - kPackTailBytes;
  const size_t directory = number_at<uint64_t>(sound_, tail);
  for (size_t at = 8; at < 200; ++at) places.push_back(at);
  for (size_t at = page; at < page + 400; ++at) places.push_back(at);
  for (size_t at = number_at<uint64_t>(sound_, directory + 8); at < sound_.size(); ++at) {
    places.push_back(at);
  }
  const uint64_t values[] = {0,
                             1,
                             7,
                             0x7FFFFFFF,
                             0x80000000,
                             0xFFFFFFFF,
                             uint64_t{1} << 40,
                             uint64_t{1} << 63,
                             ~uint64_t{0},
                             ~uint64_t{0} - 4095};
  for (size_t number = 0; number < places.size(); ++number) {
    const size_t at = places[number];
    for (size_t width : {4, 8}) {
      if (at % width != 0 || at + width > sound_.size()) continue;
      const size_t every = at < directory && at > page + 400 ? 5 : 1;  // tables are long
      for (size_t i = number % every; i < std::size(values); i += every) {
        std::vector<uint8_t> damaged = sound_;
        std::memcpy(damaged.data() + at, &values[i], width);
        correct_checksums(damaged);
        const std::string path = write(damaged);
        use(open_pack_at(path).source);
        use(open_pack_at(path, true).source);
      }
    }
  }
}

TEST(UnknownPack, OfALaterVersionIsRejectedByName) {
  const TemporaryFolder place;
  write_pictures(place, "data", 3);
  PackOptions options;
  options.level = {};
  pack({open_source(place / "data")}, place / "x", options);
  const std::string content = content_of(place / "x");
  const auto changed = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> bytes(content.begin(), content.end());
    bytes[at] = value;
    correct_checksums(bytes);
    return open_pack_at(place.write("changed", text_of(bytes)));
  };
  EXPECT_EQ(changed(8, 2).code, "HR0441");      // version
  EXPECT_EQ(changed(19, 0x80).code, "HR0441");  // an unknown required feature
  const size_t tail = content.size() - kPackTailBytes;
  const std::vector<uint8_t> bytes(content.begin(), content.end());
  const size_t directory = number_at<uint64_t>(bytes, tail);
  const size_t sections = number_at<uint32_t>(bytes, tail + 8);
  size_t refused = 0;
  for (size_t i = 0; i < sections; ++i) {
    const size_t entry = directory + i * kSectionEntryBytes;
    const bool must = number_at<uint32_t>(bytes, entry + 28) & kMustUnderstand;
    const Opened opened = changed(entry + 1, 0x77);  // the tag of a later version
    EXPECT_EQ(opened.source == nullptr, must) << i;
    refused += must;
  }
  EXPECT_GE(refused, 5u);
}

TEST(Shards, MissingOrFromAnotherPackAreDetected) {
  const TemporaryFolder place;
  write_pictures(place, "data", 20);
  PackOptions options;
  options.level = {};
  options.shards = 4;
  options.page_bytes = 4096;
  const auto make = [&](const std::string& name) {
    pack({open_source(place / "data")}, place / name, options);
  };
  make("whole");
  make("gap");
  fs::remove(place / "gap/shard-00002.hrpack");
  EXPECT_EQ(open_pack_at(place / "gap").code, "HR0445");
  const SourcePtr gap = open_pack_at(place / "gap", true).source;
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->size(), 10);
  EXPECT_NE(gap->description().find("shard 2 of 4 is missing"), std::string::npos);
  make("swapped");
  fs::rename(place / "swapped/shard-00001.hrpack", place / "swapped/x");
  fs::rename(place / "swapped/shard-00002.hrpack", place / "swapped/shard-00001.hrpack");
  fs::rename(place / "swapped/x", place / "swapped/shard-00002.hrpack");
  EXPECT_EQ(open_pack_at(place / "swapped").code, "HR0445");
  fs::remove(place / "data/ant/0.jpg");
  make("other");
  fs::copy_file(place / "other/shard-00003.hrpack", place / "whole/shard-00003.hrpack",
                fs::copy_options::overwrite_existing);
  EXPECT_EQ(open_pack_at(place / "whole").code, "HR0445");
  fs::resize_file(place / "other/shard-00001.hrpack", 6000);
  EXPECT_EQ(open_pack_at(place / "other").code, "HR0442");
  const SourcePtr cut = open_pack_at(place / "other", true).source;
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->size(), 5);
}

}  // namespace
}  // namespace headrace
