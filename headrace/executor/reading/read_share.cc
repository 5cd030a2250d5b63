// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/read_share.h"

#include "headrace/codecs/video/recent_tracks.h"
#include "headrace/storage/file.h"
#include "headrace/storage/file_window.h"

namespace headrace {
namespace {

constexpr size_t kMaxSpare = 64;
// Bytes reserved for a file of unknown size, small enough that several first reads run at once.
constexpr size_t kUnknown = size_t{1} << 20;

}  // namespace

size_t bytes_of(const RecordData& data) {
  size_t bytes = data.row_indexes.capacity();
  data.each_buffer([&](const Buffer& buffer) { bytes += buffer.capacity(); });
  for (const FieldData& field : data.fields) {
    if (field.file) bytes += std::max(FileWindow::kLargest, field.file->held_bytes());
    if (!field.track) continue;
    const auto users = static_cast<size_t>(std::max(field.track.use_count(), 1L));
    bytes += RecentTracks::bytes_of(*field.track) / users;
  }
  return bytes;
}

size_t ReadShare::allowance() const {
  const size_t usual = sizes_.bytes();
  if (usual == 0) return async_ ? std::min(bytes_ / 16, kUnknown) : bytes_ / 16;
  return std::clamp(usual + usual / 2, bytes_ / 64, bytes_ / 2);
}

void ReadShare::reserve_spares() { spare_.reserve(kMaxSpare); }

RecordData ReadShare::take_spare() {
  if (spare_.empty()) return {};
  RecordData data = std::move(spare_.back());
  spare_.pop_back();
  spare_bytes_ -= bytes_of(data);
  return data;
}

void ReadShare::keep_spare(RecordData& data) {
  data.fields.clear();  // with their files
  const size_t bytes = bytes_of(data);
  if (bytes == 0 || spare_.size() == spare_.capacity() || spare_bytes_ + bytes > bytes_ / 8 ||
      !fits(bytes)) {
    return;
  }
  spare_bytes_ += bytes;
  spare_.push_back(std::move(data));
}

void ReadShare::keep_used(RecordData& data) {
  if (bytes_of(data) <= 2 * sizes_.bytes()) keep_spare(data);
}

void ReadShare::drop_spares() {
  spare_.clear();
  spare_bytes_ = 0;
}

}  // namespace headrace
