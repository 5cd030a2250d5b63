// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/unfinished_pictures.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/kernels/batch/queue.h"

namespace headrace {
namespace {

// The index of a value in the list, which is appended if it is new.
template <class T, class Same = std::equal_to<>>
int32_t number_of(std::vector<T>& list, const T& value, Same same = {}) {
  const auto found = std::ranges::find_if(list, [&](const T& known) { return same(known, value); });
  const auto number = static_cast<int32_t>(found - list.begin());
  if (found == list.end()) list.push_back(value);
  return number;
}

bool is_same(const TablePair& a, const TablePair& b) {
  return a.bytes == b.bytes && a.map == b.map;
}

}  // namespace

UnfinishedPictures::UnfinishedPictures(const Shape& shape, DType dtype, MemoryFormat format,
                                       int64_t rows, int64_t of_row, size_t mixings,
                                       Finished finished, std::unique_ptr<CodedRows> coded)
    : shape_(shape),
      dtype_(dtype),
      format_(format),
      of_row_(of_row),
      make_finished_(std::move(finished)),
      ends_(size_t(rows * of_row)),
      mixings_(mixings, std::vector<Mixed>(size_t(rows))),
      coded_(std::move(coded)) {}

bool UnfinishedPictures::set(int64_t picture, const RecipeEdit& edit) {
  if (edit.size != Size{int(shape_[1]), int(shape_[2])} || edit.map->output() != dtype_) {
    return false;
  }
  ends_[size_t(picture)] = {.edit = edit.edit, .map = edit.map, .table = edit.table};
  return true;
}

bool UnfinishedPictures::take(int64_t row, int64_t record, const Recipe& beginning, uint8_t* slot) {
  return coded_ && coded_->take(row, record, beginning, slot);
}

uint8_t* UnfinishedPictures::bytes_of(int64_t picture, uint8_t* slot) {
  return coded_ ? coded_->pixels(picture, slot) : slot + size_t(picture) * samples();
}

uint8_t* UnfinishedPictures::finished(int64_t picture, std::string_view why) {
  if (coded_) coded_->leave(picture);
  MutexLock lock(mutex_);
  if (!memory_) memory_ = make_finished_(ends_.size() * finished_bytes());
  uint8_t* const to = static_cast<uint8_t*>(memory_.get()) + size_t(picture) * finished_bytes();
  ends_[size_t(picture)] = {.finished = to, .why_finished = why};
  return to;
}

void UnfinishedPictures::mix(size_t mixing, std::span<const int64_t> rows,
                             std::span<const RowMix> mixes) {
  for (size_t i = 0; i < rows.size(); ++i) {
    mixings_[mixing][size_t(rows[i])] = {mixes[i], rows.front()};
  }
}

void UnfinishedPictures::move(int64_t from, int64_t to) {
  const auto moved = ends_.begin() + from * of_row_;
  std::move(moved, moved + of_row_, ends_.begin() + to * of_row_);
  for (std::vector<Mixed>& mixing : mixings_) mixing[size_t(to)] = mixing[size_t(from)];
  if (coded_) coded_->move(from, to);
}

void UnfinishedPictures::settle(int64_t rows) {
  ends_.resize(size_t(rows * of_row_));
  for (std::vector<Mixed>& mixing : mixings_) mixing.resize(size_t(rows));
  if (coded_) coded_->settle(rows);
}

// Each picture's own table may form a separate pair.
size_t UnfinishedPictures::room_of(int64_t first, int64_t last) const {
  const std::span<const End> ends(ends_.begin() + first * of_row_, ends_.begin() + last * of_row_);
  const auto tables =
      std::ranges::count_if(ends, [](const End& end) { return end.table != nullptr; });
  const size_t of_table = size_t(shape_[0]) * 256 + table_bytes() + sizeof(TablePair);
  const size_t of_picture = sizeof(PictureEdit) + (coded_ ? 0 : samples()) +
                            mixings_.size() * (sizeof(RowMix) + sizeof(RowGroup));
  return ends.size() * of_picture + size_t(tables) * of_table + table_bytes() +
         (coded_ ? coded_->room_of(first, last) : 0);
}

void UnfinishedPictures::put_together() {
  if (coded_) coded_->put_together();
  write_parameters();
}

template <class T>
UnfinishedPictures::Part UnfinishedPictures::add(std::span<const T> values) {
  parameters_.resize((parameters_.size() + 15) / 16 * 16);
  const Part part{parameters_.size(), values.size()};
  const auto* const bytes = reinterpret_cast<const uint8_t*>(values.data());
  parameters_.insert(parameters_.end(), bytes, bytes + values.size_bytes());
  return part;
}

void UnfinishedPictures::write_parameters() {
  parameters_.clear();
  parameters_.resize(ends_.size() * sizeof(PictureEdit));
  write_tables();
  write_mixes();
  if (coded_) write_coded();
}

// A batch has few maps, usually one. Each map has a set of tables, and a picture stores its set's
// number. If pictures have separate tables, they store the number of a pair, from which the device
// makes a set.
void UnfinishedPictures::write_tables() {
  maps_ = bytes_ = pairs_ = {};
  std::vector<const PixelMap*> maps;
  std::vector<const QuickTable*> own;
  std::vector<TablePair> pairs;
  for (size_t i = 0; i < ends_.size(); ++i) {
    PictureEdit edit = ends_[i].edit;
    if (ends_[i].map) {
      const QuickTable* const table = ends_[i].table.get();
      const TablePair pair{table ? number_of(own, table) : -1, number_of(maps, ends_[i].map)};
      edit.tables = number_of(pairs, pair, is_same);
    }
    std::memcpy(parameters_.data() + i * sizeof edit, &edit, sizeof edit);
  }
  if (own.empty() && std::ranges::all_of(maps, &PixelMap::is_identity)) return;
  const auto channels = size_t(shape_[0]);
  std::vector<const StoreTable*> tables;
  for (const PixelMap* map : maps) {
    for (size_t c = 0; c < channels; ++c) tables.push_back(&map->table(int(c)));
  }
  maps_ = add(std::span<const uint8_t>(element_table(tables)));
  if (own.empty()) return;  // every pair is just a map
  std::vector<uint8_t> bytes;
  for (const QuickTable* table : own) {
    for (size_t c = 0; c < channels; ++c) {
      bytes.insert(bytes.end(), table->of[c].begin(), table->of[c].end());
    }
  }
  bytes_ = add(std::span<const uint8_t>(bytes));
  pairs_ = add(std::span<const TablePair>(pairs));
}

void UnfinishedPictures::write_mixes() {
  mix_parts_.clear();
  for (const std::vector<Mixed>& mixing : mixings_) {
    std::vector<RowGroup> groups;
    std::vector<RowMix> mixes;
    bool any = false;
    for (size_t row = 0; row < mixing.size(); ++row) {
      mixes.push_back(mixing[row].mix);
      if (mixing[row].group < 0) continue;
      const bool goes_on = row > 0 && mixing[row - 1].group == mixing[row].group;
      if (!goes_on) groups.push_back({static_cast<int32_t>(row), 0});
      ++groups.back().count;
      any |= !mixing[row].mix.is_empty();
    }
    if (!any) continue;
    const Part at = add(std::span<const RowGroup>(groups));
    mix_parts_.push_back({at, add(std::span<const RowMix>(mixes))});
  }
}

void UnfinishedPictures::write_coded() {
  coded_at_ = aligned(parameters_.size());
  parameters_.resize(coded_at_ + coded_->parameter_bytes());
  const size_t scratch = aligned(slot_bytes()) + aligned(parameters_.size()) + coded_scratch();
  coded_->write_parameters(parameters_.data() + coded_at_, scratch);
}

size_t UnfinishedPictures::transfer_bytes() const {
  const auto whole = std::ranges::count_if(ends_, [](const End& end) { return end.finished; });
  return slot_bytes() + parameters_.size() + size_t(whole) * finished_bytes();
}

// The device's sets of tables; null: samples are unchanged.
const uint8_t* UnfinishedPictures::queue_tables(Stream& stream, const DevicePointers& there) const {
  if (maps_.count == 0) return nullptr;
  const uint8_t* const maps = there.parameters + maps_.at;
  if (pairs_.count == 0) return maps;
  headrace::queue(
      stream,
      ComposeTables{.pairs = reinterpret_cast<const TablePair*>(there.parameters + pairs_.at),
                    .bytes = there.parameters + bytes_.at,
                    .maps = maps,
                    .tables = there.scratch,
                    .sets = int64_t(pairs_.count),
                    .channels = int32_t(shape_[0]),
                    .element = int(size_of(dtype_))});
  return there.scratch;
}

void UnfinishedPictures::queue(Stream& stream, const DevicePointers& there, void* finished) const {
  const auto channels = static_cast<int32_t>(shape_[0]), height = static_cast<int32_t>(shape_[1]),
             width = static_cast<int32_t>(shape_[2]);
  const bool planar = format_ == MemoryFormat::kChannelsFirst;
  PictureBatch kernel{.pictures = there.slot,
                      .from = PictureStrides::channels_first(channels, height, width),
                      .channels = channels,
                      .height = height,
                      .width = width,
                      .choice = RowChoice::slice(0),
                      .count = std::ssize(ends_),
                      .edits = reinterpret_cast<const PictureEdit*>(there.parameters),
                      .batch = finished,
                      .to = planar ? PictureStrides::channels_first(channels, height, width)
                                   : PictureStrides::channels_last(channels, height, width),
                      .to_height = height,
                      .to_width = width,
                      .map = {.bytes = static_cast<int>(size_of(dtype_))}};
  if (coded_) {
    const CodedRows::DevicePointers coded{there.slot, there.parameters + coded_at_,
                                          there.scratch + coded_scratch(), there.verdict};
    kernel.choice = RowChoice::indices(coded_->queue(stream, coded));
    kernel.from.picture = 1;
  }
  check(kernel);
  if (std::ranges::any_of(ends_, [](const End& end) { return end.map; })) {
    kernel.map.table = queue_tables(stream, there);
    headrace::queue(stream, kernel);
  }
  // Overwrites what the kernel computed from slot bytes that were never written.
  auto* const to = static_cast<uint8_t*>(finished);
  for (size_t i = 0; i < ends_.size(); ++i) {
    if (!ends_[i].finished) continue;
    stream.copy(to + i * finished_bytes(), ends_[i].finished, finished_bytes());
  }
  for (const MixPart& part : mix_parts_) {
    headrace::queue(
        stream,
        MixRows{.batch = finished,
                .dtype = dtype_,
                .height = height,
                .lines = static_cast<int32_t>(of_row_) * (planar ? channels * height : height),
                .samples = planar ? width : width * channels,
                .samples_of_pixel = planar ? 1 : channels,
                .groups = reinterpret_cast<const RowGroup*>(there.parameters + part.groups.at),
                .mixes = reinterpret_cast<const RowMix*>(there.parameters + part.mixes.at),
                .group_count = int64_t(part.groups.count)});
  }
}

bool UnfinishedPictures::may_begin_at(int64_t row) const {
  if (row <= 0 || row >= rows()) return true;
  return std::ranges::none_of(mixings_, [&](const std::vector<Mixed>& mixing) {
    const int64_t group = mixing[size_t(row)].group;
    return group >= 0 && mixing[size_t(row) - 1].group == group;
  });
}

std::map<std::string_view, int64_t> UnfinishedPictures::finished_before() const {
  std::map<std::string_view, int64_t> out;
  for (auto row = ends_.begin(); row != ends_.end(); row += of_row_) {
    const auto found =
        std::find_if(row, row + of_row_, [](const End& end) { return end.finished; });
    if (found != row + of_row_) ++out[found->why_finished];
  }
  return out;
}

std::shared_ptr<UnfinishedRows> UnfinishedPictures::part(int64_t first, int64_t last) const {
  auto out = std::make_shared<UnfinishedPictures>(shape_, dtype_, format_, 0, of_row_,
                                                  mixings_.size(), make_finished_,
                                                  coded_ ? coded_->part(first, last) : nullptr);
  out->first_ = first_ + first;
  out->ends_.assign(ends_.begin() + first * of_row_, ends_.begin() + last * of_row_);
  for (size_t i = 0; i < mixings_.size(); ++i) {
    out->mixings_[i].assign(mixings_[i].begin() + first, mixings_[i].begin() + last);
  }
  {
    MutexLock lock(mutex_);
    MutexLock its(out->mutex_);
    out->memory_ = memory_;
  }
  return out;
}

}  // namespace headrace
