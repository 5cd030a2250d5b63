// SPDX-License-Identifier: Apache-2.0
// Video files in asynchronous storage that many records share, each of which needs a few frames at
// known times: only the bytes of these frames are requested.
//
// For that, a file's table of packets must be in memory. It is read once, on a thread of its own,
// before the records of the file are read ahead, and kept with those of local files (RecentTracks:
// 64 MiB in all; 28 bytes per packet, and the 4 KiB of packet 0 that plans inspect). A table that
// was dropped is read again. A file that is replaced after its table was first read is HR0208. Any
// thread may call.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/file.h"

namespace headrace {

// A file, with the bytes of some frames in memory, and its table.
struct RangedVideo {
  std::shared_ptr<const File> file;
  std::shared_ptr<const VideoTrack> track;  // shared: with other records of the file
};

class RangedVideos {
 public:
  explicit RangedVideos(size_t files);

  // Source::prepare_pieces() for one of the files.
  bool prepare(size_t number, const std::string& path, bool wait) const;
  // Adds the pieces for the frames nearest to these times; none if the table is not in memory.
  void add_pieces(size_t number, const std::string& path, std::span<const double> seconds,
                  std::vector<FilePiece>& out) const;
  // For these frames: uses the bytes that are staged (StagedReads), and reads the rest now, all
  // ranges at once. HR0206 if they are more than `max_bytes`.
  Result<RangedVideo> read(size_t number, const std::string& path, std::span<const double> seconds,
                           uint64_t max_bytes) const;

 private:
  struct State;
  using SharedTrack = std::shared_ptr<const VideoTrack>;
  Result<SharedTrack> table(size_t number, const std::string& path, bool takes_error) const;
  const std::shared_ptr<State> state_;  // shared: with threads that read tables, which may outlive
                                        // this
};

}  // namespace headrace
