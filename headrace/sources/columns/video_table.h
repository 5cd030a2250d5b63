// SPDX-License-Identifier: Apache-2.0
// Reads the packet table of a video in asynchronous storage by range, without reading the packets,
// except for the part of the first packet that plans inspect.
#pragma once

#include <memory>
#include <string>

#include "headrace/codecs/video/video_track.h"
#include "headrace/storage/storage.h"

namespace headrace {

struct VideoTable {
  std::shared_ptr<const VideoTrack> track;  // null: reading the whole file is cheaper
  FileIdentity identity;
};

// `known`: the expected version; null: any. `separate`: the file is of one record, and may be read
// whole instead: then a table that takes much of the file is an error.
Result<VideoTable> read_video_table(const std::string& path, const FileIdentity* known,
                                    bool separate);

}  // namespace headrace
