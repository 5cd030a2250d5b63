// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/clip_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "headrace/codecs/media/mp4_test_boxes.h"
#include "headrace/executor/reading/read_ahead.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/storage/file.h"
#include "headrace/storage/memory_files.h"

namespace headrace {
namespace clip_reads_test {

using mp4_test::Bytes;

constexpr size_t kPacket = 10'000;
constexpr int64_t kFiles = 20;
constexpr uint32_t kPackets = 100;

// Key frames of kPacket bytes.
Bytes movie_file() {
  mp4_test::Movie movie;
  movie.moov_first = false;
  for (uint32_t i = 0; i < kPackets; ++i) {
    movie.samples.push_back({.content = Bytes(kPacket, static_cast<uint8_t>(i)), .key = true});
  }
  return movie.file();
}

class Folder final : public LabeledFiles {
 public:
  explicit Folder(MemoryVolume& volume) : LabeledFiles(false, FieldKind::kVideo), volume_(volume) {
    const Bytes file = movie_file();
    for (int64_t i = 0; i < kFiles; ++i) paths_.push_back(volume.write(name_of(i), file));
  }
  int64_t size() const override { return kFiles; }
  std::string root() const override { return volume_.root(); }
  uint64_t fingerprint() const override { return 0; }
  std::string description() const override { return "a folder"; }
  static std::string name_of(int64_t index) { return std::to_string(index) + ".mp4"; }

 private:
  void path_of(int64_t index, std::string& out) const override { out = paths_[size_t(index)]; }
  int64_t label_of(int64_t) const override { return 0; }
  MemoryVolume& volume_;
  std::vector<std::string> paths_;
};

uint32_t frame_of(RowPosition row) {
  return static_cast<uint32_t>(10 + row.epoch * 31 + row.position * 7) % kPackets;
}

// One frame for each row.
ClipChoice a_frame() {
  return {.fields = {true}, .frames = [](size_t, const VideoTrack& track, RowPosition row) {
            EXPECT_EQ(track.frames.size(), kPackets);
            return std::optional(std::vector<uint32_t>{frame_of(row)});
          }};
}

ReadOrder epoch_of(int64_t epoch) {
  return {.index_of = [](int64_t sequence) { return sequence % kFiles; },
          .count = kFiles,
          .beyond = kFiles,
          .goes_on = epoch > 0,
          .row_of =
              [epoch](int64_t sequence) {
                return RowPosition{epoch + sequence / kFiles, sequence % kFiles};
              }};
}

void expect_frame(const RecordData& data, RowPosition row) {
  ASSERT_TRUE(data.result) << data.result.error().message();
  const FieldData& field = data.fields[0];
  ASSERT_TRUE(field.file && field.track);
  const MediaPacket& packet = field.track->packets[frame_of(row)];
  const auto held = field.file->held(static_cast<uint64_t>(packet.offset), packet.size);
  ASSERT_TRUE(held);
  EXPECT_TRUE(std::ranges::all_of(*held, [&](uint8_t b) { return b == frame_of(row); }));
}

struct Reads {
  explicit Reads(MemoryBehavior behavior = {}, double record_timeout = 0)
      : volume("clips", std::move(behavior)),
        source(std::make_shared<const Folder>(volume)),
        ahead(source, {true}, size_t{16} << 20, SIZE_MAX, {true}, record_timeout, a_frame()) {}

  MemoryVolume volume;
  SourcePtr source;
  ReadAhead ahead;
};

TEST(ClipReads, RequestTheFramesOfARowOnceItsTableIsThere) {
  MemoryVolume volume("clips");
  const Folder folder(volume);
  const ClipReads clips(folder, a_frame());
  const RowPosition row{.epoch = 1, .position = 3};
  const auto pieces_of = [&](RowPosition each) {
    std::vector<FilePiece> pieces;
    folder.pieces(5, {true}, pieces);
    EXPECT_EQ(clips.narrow(5, each, pieces), each.position >= 0);
    return pieces;
  };
  EXPECT_FALSE(clips.prepare(5, row, /*wait=*/false));
  EXPECT_TRUE(clips.prepare(5, row, /*wait=*/true));
  const std::vector<FilePiece> pieces = pieces_of(row);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].bytes, kPacket);
  EXPECT_TRUE(pieces[0].known) << "a replaced file is noticed";
  const std::vector<FilePiece> whole = pieces_of({});
  ASSERT_EQ(whole.size(), 1u) << "an unknown row";
  EXPECT_EQ(whole[0].bytes, FilePiece::kWhole);
}

TEST(ClipReads, OfEpochsTransferTablesAndFrames) {
  Reads reads({.latency_seconds = 0.001});
  uint64_t after_first = 0;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    reads.ahead.start(epoch_of(epoch));
    RecordData data;
    for (int64_t i = 0; i < kFiles; ++i) {
      const RowPosition row{epoch, i};
      const size_t lent = reads.ahead.fetch(i, i, data, /*may_wait=*/true, row);
      expect_frame(data, row);
      data = {};
      reads.ahead.give_back(lent);
    }
    reads.ahead.stop();
    if (epoch == 0) after_first = reads.volume.bytes_sent();
  }
  EXPECT_LE(after_first, 2 * kFiles * (kPacket + 20'000)) << "of a megabyte each";
  // The tables are known: 20 frames for each of the next epochs, and of one that is read ahead.
  EXPECT_LE(reads.volume.bytes_sent() - after_first, 3 * kFiles * kPacket);
  EXPECT_EQ(reads.ahead.counts().videos_by_range, 3 * kFiles);
  EXPECT_EQ(reads.ahead.counts().videos_without_table, 0);
}

TEST(ClipReads, ServeRecordsOutsideOfTheOrder) {
  const Reads reads;
  RecordData data;
  const RowPosition row{.epoch = 2, .position = 11};
  reads.ahead.read_alone(3, data, 0, row);
  expect_frame(data, row);
  reads.ahead.read_alone(3, data);
  ASSERT_TRUE(data.result);
  EXPECT_EQ(data.fields[0].file, nullptr) << "of an unknown row, the whole file";
  EXPECT_GT(data.fields[0].bytes.size(), kPackets * kPacket);
}

TEST(ClipReads, ReportWhatIsWrongWithARecord) {
  Reads reads;
  RecordData data;
  reads.ahead.read_alone(3, data, 0, {.position = 0});
  ASSERT_TRUE(data.result);
  Bytes other = movie_file();
  other.push_back(0);
  reads.volume.write(Folder::name_of(3), other);
  reads.ahead.read_alone(3, data, 0, {.position = 1});
  ASSERT_FALSE(data.result);
  EXPECT_EQ(data.result.error().code->id, "HR0208");
  EXPECT_EQ(data.result.error().where.record, 3);
  EXPECT_NE(data.result.error().where.file.find("3.mp4"), std::string::npos);
  reads.volume.remove(Folder::name_of(4));
  reads.ahead.read_alone(4, data, 0, {.position = 0});
  ASSERT_FALSE(data.result);
  EXPECT_EQ(data.result.error().code->id, "HR0201");
}

TEST(ClipReads, OfLateTablesAreThatRecordsError) {
  const Reads reads({.latency_seconds = 0.2}, /*record_timeout=*/0.05);
  RecordData data;
  reads.ahead.read_alone(3, data, 0, {.position = 0});
  ASSERT_FALSE(data.result);
  EXPECT_EQ(data.result.error().code->id, "HR0228");
}

}  // namespace clip_reads_test
}  // namespace headrace
