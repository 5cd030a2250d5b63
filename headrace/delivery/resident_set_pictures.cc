// SPDX-License-Identifier: Apache-2.0
// Pictures of a ResidentSet that are transformed when a batch is made: the storage of pictures of
// different sizes, resizing, and the single kernel after that.
#include <algorithm>
#include <cstring>

#include "headrace/delivery/resident_table.h"
#include "headrace/kernels/batch/queue.h"

namespace headrace {

// Each picture begins at a word boundary.
void ResidentSet::place_pictures(Table& table) const {
  for (int64_t record = 0; record < records_; ++record) {
    table.offsets.push_back(int64_t(table.bytes));
    table.bytes += readable(table.picture_bytes(record));
  }
}

// Copies many pictures at once.
void ResidentSet::load_pictures(const Table& table, uint8_t* values) {
  const auto end_of = [&](int64_t record) {
    return record + 1 < records_ ? size_t(table.offsets[size_t(record) + 1]) : table.bytes;
  };
  for (int64_t first = 0; first < records_;) {
    const auto begin = size_t(table.offsets[size_t(first)]);
    int64_t last = first + 1;
    while (last < records_ && end_of(last) - begin <= kLoadBytes) ++last;
    const size_t bytes = end_of(last - 1) - begin;
    auto* const stage = static_cast<uint8_t*>(staging_.take(std::max<size_t>(bytes, 1)));
    for (int64_t record = first; record < last; ++record) {
      std::memcpy(stage + size_t(table.offsets[size_t(record)]) - begin,
                  table.picture(record)->values, table.picture_bytes(record));
    }
    stream_->copy(values + begin, stage, bytes);
    staging_.fence(stream_->record());
    first = last;
  }
}

// Approximate device memory for resizing a batch: its pictures, and the intermediate between the
// passes.
size_t ResidentSet::resize_room(const Table& table) const {
  const Shape& stored = table.edited->stored;
  Size from{int(stored[1]), int(stored[2])};
  for (int64_t record = 0; table.field.pictures && record < records_; ++record) {
    const Size size = table.picture(record)->size;
    from = {std::max(from.height, size.height), std::max(from.width, size.width)};
  }
  const Size to = table.edited->sample.size;
  const int64_t between =
      std::max(int64_t{from.height} * to.width, int64_t{from.width} * to.height);
  return size_t(options_.batch_rows * stored[0] * (between + int64_t{to.height} * to.width));
}

// Uploads the kernel's lookup tables.
void ResidentSet::load_steps(Table& table) {
  if (options_.steps->resizes()) {
    const size_t row = table.field.record_bytes() / size_of(table.field.dtype);
    table.resized = device_->allocate(readable(size_t(options_.batch_rows) * row));
    table.work = std::make_shared<DeviceRing>(device_, 1);
  }
  const PixelMap& map = *table.edited->sample.map;
  if (map.is_identity()) return;
  std::vector<const StoreTable*> channels;
  for (int64_t c = 0; c < table.edited->stored[0]; ++c) channels.push_back(&map.table(int(c)));
  const std::vector<uint8_t> elements = element_table(channels);
  table.elements = device_->allocate(elements.size());
  void* const stage = staging_.take(elements.size());
  std::memcpy(stage, elements.data(), elements.size());
  stream_->copy(table.elements.get(), stage, elements.size());
  staging_.fence(stream_->record());
}

void ResidentSet::plan_resize_of(Table& table) const {
  const DeviceSteps::Output& edited = *table.edited;
  std::vector<ResizeWindow> windows;
  for (size_t row = 0; row < edited.windows.size(); ++row) {
    const CodedWindow& window = edited.windows[row];
    const ResidentPicture* const own = table.picture(rows_.indices[row]);
    const int64_t height = own ? own->size.height : edited.stored[1];
    const int64_t width = own ? own->size.width : edited.stored[2];
    const int64_t begin = own ? table.offsets[size_t(rows_.indices[row])]
                              : rows_.places[row] * int64_t(table.row_bytes());
    const int64_t first = begin + window.decoded.y * width + window.decoded.x;
    windows.push_back(window.resize(first, width, height * width));
  }
  const Size to = edited.sample.size;
  table.plan = plan_resize(
      {.filter = edited.filter.value_or(Filter::kBilinear),
       .channels = int32_t(edited.stored[0]),
       .height = to.height,
       .width = to.width,
       .strides = PictureStrides::channels_first(edited.stored[0], to.height, to.width)},
      windows);
}

// The rows of the batch, as bytes in the delivered size.
void ResidentSet::resize(const Table& table, uint8_t*& stage) {
  const auto upload = size_t(upload_bytes(table.plan));
  const size_t scratch_at = (upload + 255) / 256 * 256;
  const size_t bytes = scratch_at + size_t(scratch_bytes(table.plan));
  DeviceLease work(table.work, table.work->take(bytes, *stream_, false));
  auto* const memory = static_cast<uint8_t*>(work.memory());
  write(table.plan, stage);
  try {
    stream_->copy(memory, stage, upload);
    queue_resize(*stream_, table.plan,
                 {.upload = memory,
                  .scratch = memory + scratch_at,
                  .pictures = table.values,
                  .batch = static_cast<uint8_t*>(table.resized.get())});
  } catch (...) {
    try {
      work.set_ready(stream_->record());
    } catch (const Exception&) {
      // The device has failed, and reports that by an exception elsewhere: it no longer reads this
      // memory.
    }
    throw;
  }
  work.set_ready(stream_->record());
  stage += staged_size(upload);
}

void ResidentSet::edit(const Table& table, const RowChoice& choice, uint8_t* to, int64_t done,
                       int64_t count) {
  const RecipeEdit& sample = table.edited->sample;
  const int64_t channels = table.edited->stored[0];
  const int64_t height = sample.size.height, width = sample.size.width;
  const Shape stored = table.resized ? Shape{channels, height, width} : table.edited->stored;
  const PixelMap& map = *sample.map;
  ElementMap elements{.bytes = int(size_of(map.output())), .table = table.elements.get()};
  for (int c = 0; c < int(channels); ++c) {
    elements.padding[c] = element_bits(map.table(c), uint8_t(sample.fill[size_t(c)]));
  }
  const bool planar = options_.memory_format == MemoryFormat::kChannelsFirst;
  const void* const pictures = table.resized ? table.resized.get() : table.values;
  PictureBatch kernel{.pictures = static_cast<const uint8_t*>(pictures),
                      .from = PictureStrides::channels_first(channels, stored[1], stored[2]),
                      .channels = int32_t(channels),
                      .height = int32_t(stored[1]),
                      .width = int32_t(stored[2]),
                      .choice = choice,
                      .count = count,
                      .edits = static_cast<const PictureEdit*>(table.edits.get()) + done,
                      .batch = to + size_t(done) * table.field.record_bytes(),
                      .to = planar ? PictureStrides::channels_first(channels, height, width)
                                   : PictureStrides::channels_last(channels, height, width),
                      .to_height = int32_t(height),
                      .to_width = int32_t(width),
                      .map = elements};
  check(kernel);
  queue(*stream_, kernel);
}

void ResidentSet::stage_edits(const Table& table, uint8_t*& stage) {
  const size_t bytes = table.edited->edits.size() * sizeof(PictureEdit);
  std::memcpy(stage, table.edited->edits.data(), bytes);
  stream_->copy(table.edits.get(), stage, bytes);
  stage += staged_size(bytes);
}

}  // namespace headrace
