// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/columns/column_video.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "headrace/codecs/video/frame_times.h"

namespace headrace {

VideoColumn::VideoColumn(const Cell& files, const Cell& times) : files_(files), times_(times) {}

std::unique_ptr<VideoColumn> VideoColumn::of(const Schema& schema, const std::vector<Cell>& cells,
                                             size_t field, int64_t records) {
  const Cell& files = cells[field];
  if (files.times.empty()) return nullptr;
  const size_t number = field_number(schema, files.times);
  const bool has_times =
      number < cells.size() && schema[number].dtype == DType::kFloat64 &&
      schema[number].shape.size() <= 1 &&
      (cells[number].form == Cell::Form::kInMemory || cells[number].form == Cell::Form::kWindow);
  if (!has_times || schema[field].kind != FieldKind::kVideo) {
    bad_column(schema[field].name,
               "'" + files.times + "' does not have the times of its frames, or it is not a video");
  }
  if (records == 0 || !is_async(files.name(0))) return nullptr;
  return std::unique_ptr<VideoColumn>(new VideoColumn(files, cells[number]));
}

std::vector<double> VideoColumn::times_of(int64_t record) const {
  const bool is_window = times_.form == Cell::Form::kWindow;
  std::vector<double> times(times_.bytes * (is_window ? times_.offsets.size() : 1) /
                            sizeof(double));
  auto* const bytes = reinterpret_cast<uint8_t*>(times.data());
  if (is_window) {
    read_window(times_, record, {bytes, times.size() * sizeof(double)});
  } else {
    std::copy_n(times_.data + static_cast<size_t>(record) * times_.bytes, times_.bytes, bytes);
  }
  return times;
}

ChooseFrames VideoColumn::frames_of(int64_t record) const {
  return [times = times_of(record)](const VideoTrack& track) {
    std::vector<uint32_t> frames;
    for (const double time : times) {
      frames.push_back(static_cast<uint32_t>(nearest_frame(track, time)));
    }
    return std::optional(std::move(frames));
  };
}

bool VideoColumn::prepare(int64_t record, bool wait) const {
  std::string path;
  files_.set_path(record, path);
  return videos_.prepare(path, wait);
}

void VideoColumn::add_pieces(int64_t record, std::vector<FilePiece>& out) const {
  std::string path;
  files_.set_path(record, path);
  (void)videos_.add_pieces(path, frames_of(record), out);
}

void VideoColumn::read(int64_t record, size_t field, RecordData& out) const {
  if (!out.result) return;
  std::string path;
  files_.set_path(record, path);
  size_t held = 0;  // by the record's other videos: the limit is for all of them
  for (const FieldData& other : out.fields) held += other.file ? other.file->held_bytes() : 0;
  Result<RangedVideo> read =
      videos_.read(path, frames_of(record), out.max_bytes - std::min(held, out.max_bytes));
  if (read) {
    out.fields[field].file = std::move(read->file);
    out.fields[field].track = std::move(read->track);
    return;
  }
  Error& error = read.error();
  error.where.record = record;
  if (error.where.file.empty()) error.where.file = path;
  out.result = std::move(error);
}

}  // namespace headrace
