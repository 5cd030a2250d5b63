// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/unfinished_pictures.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/kernels/batch/queue.h"

namespace headrace {

UnfinishedPictures::UnfinishedPictures(const Shape& shape, DType dtype, MemoryFormat format,
                                       int64_t rows, Finished finished)
    : shape_(shape),
      dtype_(dtype),
      format_(format),
      make_finished_(std::move(finished)),
      edits_(size_t(rows)),
      maps_(size_t(rows)),
      finished_(size_t(rows)) {}

bool UnfinishedPictures::set(int64_t row, const RecipeEdit& edit) {
  if (edit.size != Size{int(shape_[1]), int(shape_[2])} || edit.map->output() != dtype_) {
    return false;
  }
  edits_[size_t(row)] = edit.edit;
  maps_[size_t(row)] = edit.map;
  return true;
}

uint8_t* UnfinishedPictures::finished_row(int64_t row) {
  MutexLock lock(mutex_);
  if (!memory_) memory_ = make_finished_(edits_.size() * finished_row_bytes());
  uint8_t* const memory = static_cast<uint8_t*>(memory_.get());
  finished_[size_t(row)] = memory + size_t(row) * finished_row_bytes();
  return memory + size_t(row) * finished_row_bytes();
}

void UnfinishedPictures::move(int64_t from, int64_t to) {
  edits_[size_t(to)] = edits_[size_t(from)];
  maps_[size_t(to)] = maps_[size_t(from)];
  finished_[size_t(to)] = finished_[size_t(from)];
}

void UnfinishedPictures::settle(int64_t rows) {
  edits_.resize(size_t(rows));
  maps_.resize(size_t(rows));
  finished_.resize(size_t(rows));
  write_parameters();
}

// Few maps are met in a batch, mostly one: each has a set of tables, and a row the set's number.
void UnfinishedPictures::write_parameters() {
  const int channels = static_cast<int>(shape_[0]);
  std::vector<const PixelMap*> sets;
  for (size_t row = 0; row < maps_.size(); ++row) {
    if (!maps_[row]) continue;
    const auto found = std::ranges::find(sets, maps_[row]);
    edits_[row].tables = static_cast<int32_t>(found - sets.begin());
    if (found == sets.end()) sets.push_back(maps_[row]);
  }
  const size_t edits_bytes = edits_.size() * sizeof(PictureEdit);
  parameters_.assign(edits_bytes, 0);
  if (edits_bytes > 0) std::memcpy(parameters_.data(), edits_.data(), edits_bytes);
  tables_at_ = 0;
  if (std::ranges::all_of(sets, &PixelMap::is_identity)) return;
  std::vector<const StoreTable*> tables;
  for (const PixelMap* map : sets) {
    for (int c = 0; c < channels; ++c) tables.push_back(&map->table(c));
  }
  const std::vector<uint8_t> elements = element_table(tables);
  tables_at_ = edits_bytes;
  parameters_.insert(parameters_.end(), elements.begin(), elements.end());
}

bool UnfinishedPictures::any_edited() const {
  return std::ranges::any_of(maps_, [](const PixelMap* map) { return map != nullptr; });
}

size_t UnfinishedPictures::crossing_bytes() const {
  const auto whole = std::ranges::count_if(finished_, [](const uint8_t* row) { return row; });
  return slot_bytes() + parameters_.size() + size_t(whole) * finished_row_bytes();
}

void UnfinishedPictures::queue(Stream& stream, const There& there, void* finished) const {
  const auto channels = static_cast<int32_t>(shape_[0]), height = static_cast<int32_t>(shape_[1]),
             width = static_cast<int32_t>(shape_[2]);
  const bool planar = format_ == MemoryFormat::kChannelsFirst;
  const PictureBatch kernel{
      .pictures = there.slot,
      .from = PictureStrides::channels_first(channels, height, width),
      .channels = channels,
      .height = height,
      .width = width,
      .choice = RowChoice::slice(0),
      .count = rows(),
      .edits = reinterpret_cast<const PictureEdit*>(there.parameters),
      .batch = finished,
      .to = planar ? PictureStrides::channels_first(channels, height, width)
                   : PictureStrides::channels_last(channels, height, width),
      .to_height = height,
      .to_width = width,
      .map = {.bytes = static_cast<int>(size_of(dtype_)),
              .table = tables_at_ > 0 ? there.parameters + tables_at_ : nullptr}};
  check(kernel);
  if (any_edited()) headrace::queue(stream, kernel);
  // Over what the kernel has made of a slot's row that nobody has written.
  auto* const to = static_cast<uint8_t*>(finished);
  for (size_t row = 0; row < finished_.size(); ++row) {
    if (!finished_[row]) continue;
    stream.copy(to + row * finished_row_bytes(), finished_[row], finished_row_bytes());
  }
}

std::shared_ptr<const UnfinishedRows> UnfinishedPictures::part(int64_t first, int64_t last) const {
  auto out = std::make_shared<UnfinishedPictures>(shape_, dtype_, format_, 0, make_finished_);
  out->first_ = first_ + first;
  out->edits_.assign(edits_.begin() + first, edits_.begin() + last);
  out->maps_.assign(maps_.begin() + first, maps_.begin() + last);
  out->finished_.assign(finished_.begin() + first, finished_.begin() + last);
  {
    MutexLock lock(mutex_);
    MutexLock its(out->mutex_);
    out->memory_ = memory_;
  }
  out->write_parameters();
  return out;
}

}  // namespace headrace
