// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/clip_reads.h"

#include <algorithm>
#include <utility>

namespace headrace {

ClipReads::ClipReads(const Source& source, ClipChoice choice)
    : source_(source), choice_(std::move(choice)) {}

// Fields with the same file are one video.
std::vector<ClipReads::Video> ClipReads::videos_of(int64_t index, RowPosition row) const {
  std::vector<Video> out;
  if (row.position < 0) return out;
  for (size_t field = 0; field < choice_.fields.size(); ++field) {
    if (!choice_.fields[field]) continue;
    std::string path = source_.separate_file(index, field);
    if (path.empty() || !is_async(path)) continue;
    const auto same = std::ranges::find(out, path, &Video::path);
    if (same == out.end()) {
      out.push_back({std::move(path), {field}});
    } else {
      same->fields.push_back(field);
    }
  }
  return out;
}

ChooseFrames ClipReads::frames_of(const Video& video, RowPosition row) const {
  return [this, &video, row](const VideoTrack& track) -> std::optional<std::vector<uint32_t>> {
    std::vector<uint32_t> all;
    for (const size_t field : video.fields) {
      const auto frames = choice_.frames(field, track, row);
      if (!frames) return {};
      all.insert(all.end(), frames->begin(), frames->end());
    }
    return all;
  };
}

bool ClipReads::prepare(int64_t index, RowPosition row, bool wait) const {
  const std::vector<Video> videos = videos_of(index, row);
  bool is_ready = true;
  for (const Video& video : videos) is_ready &= videos_.prepare(video.path, /*wait=*/false);
  if (is_ready || !wait) return is_ready;
  // Only now, so that all tables of the record are read at once.
  for (const Video& video : videos) (void)videos_.prepare(video.path, /*wait=*/true);
  return true;
}

bool ClipReads::narrow(int64_t index, RowPosition row, std::vector<FilePiece>& pieces) const {
  bool changed = false;
  for (const Video& video : videos_of(index, row)) {
    std::vector<FilePiece> ranges;
    const VideoReading reading = videos_.add_pieces(video.path, frames_of(video, row), ranges);
    if (reading == VideoReading::kCheaper || reading == VideoReading::kNoTable) continue;
    std::erase_if(pieces, [&](const FilePiece& piece) {
      return piece.bytes == FilePiece::kWhole && piece.path == video.path;
    });
    pieces.insert(pieces.end(), std::make_move_iterator(ranges.begin()),
                  std::make_move_iterator(ranges.end()));
    changed = true;
  }
  return changed;
}

Result<std::vector<StagedVideo>> ClipReads::open(int64_t index, RowPosition row,
                                                 uint64_t max_bytes) const {
  std::vector<StagedVideo> out;
  for (Video& video : videos_of(index, row)) {
    Result<RangedVideo> read = videos_.read(video.path, frames_of(video, row), max_bytes);
    if (!read) {
      Error error = std::move(read.error());
      error.where.record = index;
      if (error.where.file.empty()) error.where.file = video.path;
      return error;
    }
    by_range_ += read->file != nullptr;
    without_table_ += read->reading == VideoReading::kNoTable;
    if (!read->file) continue;
    out.push_back({std::move(video.path), std::move(read->file), std::move(read->track)});
  }
  return out;
}

void ClipReads::add_counts(ReadCounts& counts) const {
  counts.videos_by_range += by_range_;
  counts.videos_without_table += without_table_;
}

}  // namespace headrace
