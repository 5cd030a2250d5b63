// SPDX-License-Identifier: Apache-2.0
// Reads clips of videos that are separate files in asynchronous storage: first the file's table,
// then only the packets that the row's clips need.
//
// The clips are drawn for the row's position (Plan::clip_frames), so these packets are known as
// soon as the table is in memory, before the record is read. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "headrace/executor/reading/read_counts.h"
#include "headrace/sources/columns/ranged_videos.h"
#include "headrace/sources/source.h"
#include "headrace/sources/staged_videos.h"

namespace headrace {

// The row that a record is read for.
struct RowPosition {
  int64_t epoch = 0;
  int64_t position = -1;  // -1: unknown, or a partner of a row
};

// The fields with such videos, and the frames that a row needs of one with this table; none if they
// are unknown.
struct ClipChoice {
  std::vector<bool> fields = {};
  std::function<std::optional<std::vector<uint32_t>>(size_t field, const VideoTrack& track,
                                                     RowPosition row)>
      frames = {};
};

class ClipReads {
 public:
  // The source must outlive it.
  ClipReads(const Source& source, ClipChoice choice);

  // As Source::prepare_pieces(), for the tables of a record's videos.
  bool prepare(int64_t index, RowPosition row, bool wait) const;
  // Replaces pieces that are whole videos with those for the row's clips. A video whose table is
  // not in memory loses its piece: the thread that needs the record reads it. Returns whether it
  // changed any.
  bool narrow(int64_t index, RowPosition row, std::vector<FilePiece>& pieces) const;
  // The record's videos that are not read whole, with the bytes for the row's clips. Like
  // RangedVideos::read().
  Result<std::vector<StagedVideo>> open(int64_t index, RowPosition row, uint64_t max_bytes) const;

  // Adds the videos that were opened.
  void add_counts(ReadCounts& counts) const;

 private:
  struct Video {
    std::string path;
    std::vector<size_t> fields;
  };
  std::vector<Video> videos_of(int64_t index, RowPosition row) const;
  ChooseFrames frames_of(const Video& video, RowPosition row) const;

  const Source& source_;
  const ClipChoice choice_;
  const RangedVideos videos_{RangedVideos::Files::kSeparate};
  mutable std::atomic<int64_t> by_range_{0}, without_table_{0};
};

}  // namespace headrace
