// SPDX-License-Identifier: Apache-2.0
// Columns of videos in asynchronous storage, whose records need the frames at the times in another
// column (PathColumn::times).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headrace/sources/columns/column_cell.h"
#include "headrace/sources/columns/ranged_videos.h"

namespace headrace {

class VideoColumn {
 public:
  // For `cell` if it is such a column; null otherwise. `times` is a cell of the same source, which
  // must outlive this. Throws HR0420 if it has no times.
  static std::unique_ptr<VideoColumn> of(const Schema& schema, const std::vector<Cell>& cells,
                                         size_t field, int64_t records);

  // Source::prepare_pieces(), pieces() and read() for this field. The file is in the record's field
  // if `out` has no error.
  bool prepare(int64_t record, bool wait) const;
  void add_pieces(int64_t record, std::vector<FilePiece>& out) const;
  void read(int64_t record, size_t field, RecordData& out) const;

 private:
  VideoColumn(const Cell& files, const Cell& times);
  std::vector<double> times_of(int64_t record) const;
  ChooseFrames frames_of(int64_t record) const;

  const Cell& files_;
  const Cell& times_;
  const RangedVideos videos_{RangedVideos::Files::kShared};
};

}  // namespace headrace
