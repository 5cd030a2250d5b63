// SPDX-License-Identifier: Apache-2.0
// Reads the few frames that records need of video files in asynchronous storage, and requests only
// the bytes of these frames.
//
// For that, a file's table of packets must be in memory. The table is read on a separate thread,
// before the records of the file are read ahead, and kept with the tables of local files
// (RecentTracks: 64 MiB in all, which memory_limit does not include; 28 bytes per packet, and the 4
// KiB of packet 0 that plans inspect). Records that are read ahead or worked on also count their
// parts of the table. A table that was dropped is read again. A file that is replaced after its
// table was first read is HR0208. Any thread may call it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/file.h"

namespace headrace {

// The frames that a record needs of a video with this table, by number, in any order; none if they
// are unknown. Pure: two calls return the same.
using ChooseFrames = std::function<std::optional<std::vector<uint32_t>>(const VideoTrack& track)>;

// Whether a video is read by range. kUnknown: its table is not in memory. kCheaper: it is read
// whole, because it is small, or because most of it is needed. kNoTable: it is read whole, because
// its table cannot be read separately (fragments, Matroska, damage), or the frames are unknown.
enum class VideoReading : uint8_t { kByRange, kUnknown, kCheaper, kNoTable };

// A file, with the bytes of some frames in memory, and its table; or, without a file, how it is
// read instead.
struct RangedVideo {
  std::shared_ptr<const File> file = {};
  std::shared_ptr<const VideoTrack> track = {};  // shared: with other records of the file
  VideoReading reading = VideoReading::kByRange;
};

class RangedVideos {
 public:
  // kShared: many records need each file, which is always read by range. kSeparate: a file may be
  // of one record only, and is read whole where that is cheaper, where its table cannot be read, or
  // once decoding has needed many packets outside of the ranges.
  enum class Files : uint8_t { kShared, kSeparate };
  explicit RangedVideos(Files files);

  // Source::prepare_pieces() for one of the files.
  bool prepare(const std::string& path, bool wait) const;
  // Adds the pieces for these frames, if it is read by range.
  VideoReading add_pieces(const std::string& path, const ChooseFrames& choose,
                          std::vector<FilePiece>& out) const;
  // For these frames: uses the bytes that are staged (StagedReads), and reads the rest now, all
  // ranges at once. HR0206 if they are more than `max_bytes`.
  Result<RangedVideo> read(const std::string& path, const ChooseFrames& choose,
                           uint64_t max_bytes) const;

 private:
  struct State;
  using SharedTrack = std::shared_ptr<const VideoTrack>;
  Result<SharedTrack> table(const std::string& path, bool takes_error) const;
  const std::shared_ptr<State> state_;  // shared: with threads that read tables, which may outlive
                                        // this
};

}  // namespace headrace
