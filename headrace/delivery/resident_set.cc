// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/resident_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/device/out_of_memory.h"
#include "headrace/kernels/batch/gather_rows.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/sampling/wrapped_indices.h"

namespace headrace {
namespace {

constexpr size_t kStagedAlignment = 64;  // of a piece in the staging memory
constexpr size_t kLoadBytes = size_t{16} << 20;

const ErrorCode kNoRoom{
    "HR0891", ErrorKind::kResource, "the data does not fit on the device",
    "Data that stays on a device takes its memory there for good, beside the batches that are cut "
    "from it, the model, and what the framework keeps for itself. The message has the numbers. "
    "fraction= keeps a part on the device, and copies the other records from the host when their "
    "turn comes: same order, same batches. Bytes (uint8) take a quarter of what float32 takes, so "
    "leave the conversion to the transforms, which run for each batch."};

// The resize reads words.
size_t readable(size_t bytes) { return (bytes + 7) / 8 * 8; }

size_t staged_size(size_t bytes) {
  return (bytes + kStagedAlignment - 1) / kStagedAlignment * kStagedAlignment;
}

}  // namespace

// A field where it lies.
struct ResidentSet::Table {
  ResidentField field;
  const uint8_t* values = nullptr;  // of the records that are resident
  uint8_t* streamed = nullptr;      // after them: the rows of a batch that are not
  // shared: views of the data use it, too. On a device alone.
  std::shared_ptr<DeviceLease> data;
  std::shared_ptr<DeviceRing> batches;
  size_t bytes = 0;
  const DeviceSteps::Output* edited = nullptr;
  std::shared_ptr<void> edits;     // on the device: of the batch that is made
  std::shared_ptr<void> elements;  // on the device: what each value of a byte becomes
  // Where pictures are resized before that: the batch's, as bytes; how; and the device's memory for
  // what the kernels are told and need.
  std::shared_ptr<void> resized;
  ResizePlan plan;
  std::shared_ptr<DeviceRing> work;

  // Where each record lies, of pictures that differ in size.
  std::vector<int64_t> offsets;

  const ResidentPicture* picture(int64_t record) const {
    return field.pictures ? &(*field.pictures)[size_t(record)] : nullptr;
  }
  size_t picture_bytes(int64_t record) const {
    const Size size = picture(record)->size;
    return size_t(edited->stored[0] * size.height * size.width);
  }
  size_t resized_bytes() const {  // of a row
    return resized ? field.record_bytes() / size_of(field.dtype) : 0;
  }
  // Of a record where all lie in equal ones; record_bytes() has it as it is delivered.
  size_t row_bytes() const {
    if (field.pictures) return 0;
    return edited ? size_t(element_count(edited->stored)) : field.record_bytes();
  }
};

ResidentSet::ResidentSet(DevicePtr device, std::vector<ResidentField> fields, int64_t records,
                         ResidentOptions options)
    : device_(std::move(device)),
      records_(records),
      options_(options),
      on_device_(options.on_device < 0 ? records : std::min(options.on_device, records)),
      stream_(device_->make_stream()),
      staging_(device_, 2, 0) {
  for (ResidentField& field : fields) {
    auto table = std::make_unique<Table>();
    table->field = std::move(field);
    const bool has_values = table->field.has_values();
    if (!has_values) table->field.shape.clear();
    if (table->field.edited >= 0) {
      table->edited = &options_.steps->outputs()[size_t(table->field.edited)];
    }
    const size_t held = size_t(on_device_ + (is_partial() ? options_.batch_rows : 0));
    if (table->field.pictures) place_pictures(*table);
    if (!table->field.pictures) table->bytes = readable(held * table->row_bytes());
    if (!has_values || twin_of(*table)) table->bytes = 0;
    table->batches = std::make_shared<DeviceRing>(device_, kBatches);
    tables_.push_back(std::move(table));
  }
  check_room();
  for (auto& table : tables_) load(*table);
  device_indices_ = device_->allocate(size_t(options_.batch_rows) * 8);
}

// Each begins at a word.
void ResidentSet::place_pictures(Table& table) const {
  for (int64_t record = 0; record < records_; ++record) {
    table.offsets.push_back(int64_t(table.bytes));
    table.bytes += readable(table.picture_bytes(record));
  }
}

ResidentSet::~ResidentSet() {
  try {
    stream_->synchronize();
  } catch (const Exception&) {
    // The device has failed, and says so at its next use: nothing of it reads any more.
  }
}

void ResidentSet::check_room() const {
  size_t data = 0, batch = 0;
  for (const auto& table : tables_) {
    data += table->bytes;
    batch += table->field.record_bytes() * size_t(options_.batch_rows);
    if (table->edited && options_.steps->resizes()) data += resize_room(*table);
  }
  const size_t batches = kBatches * (batch + batch / 8), free = device_->free_bytes();
  if (data + batches <= free) return;
  const double per_record = double(data) / double(std::max<int64_t>(on_device_, 1));
  const double room = free > batches ? double(free - batches) : 0;
  const bool any_differ =
      std::ranges::any_of(tables_, [](const auto& table) { return bool(table->field.pictures); });
  const int percent = int(95 * std::min(1.0, room / (per_record * double(records_))));
  raise(kNoRoom,
        device_->name() + ": " + mebibytes(data) + " for " + std::to_string(on_device_) +
            " records and " + mebibytes(batches) + " for batches, " + mebibytes(free) + " of " +
            mebibytes(device_->total_bytes()) + " are free",
        percent > 0 && !any_differ ? "fraction=" + std::to_string(percent / 100.0).substr(0, 4) +
                                         " keeps what fits, and copies the rest when its turn comes"
                                   : "a smaller batch_size, or a plain Loader");
}

void ResidentSet::load(Table& table) {
  if (!table.field.has_values()) return;
  if (table.edited) load_steps(table);
  if (const Table* const twin = twin_of(table)) {
    table.offsets = twin->offsets;
    table.values = twin->values;
    table.streamed = twin->streamed;
    table.data = twin->data;
    return;
  }
  Slab slab{.memory = device_->allocate(table.bytes), .bytes = table.bytes, .busy = {}};
  auto* const values = static_cast<uint8_t*>(slab.memory.get());
  const size_t bytes = size_t(on_device_) * table.row_bytes();
  if (table.field.pictures) load_pictures(table, values);
  for (size_t at = 0; at < bytes; at += kLoadBytes) {
    const size_t piece = std::min(kLoadBytes, bytes - at);
    void* const stage = staging_.take(piece);
    std::memcpy(stage, table.field.values + at, piece);
    stream_->copy(values + at, stage, piece);
    staging_.fence(stream_->record());
  }
  table.values = values;
  table.streamed = values + bytes;
  // A ring of this slab alone: what it knows is how to free memory that somebody still reads.
  auto ring = std::make_shared<DeviceRing>(device_, 1);
  table.data = std::make_shared<DeviceLease>(std::move(ring), std::move(slab));
  table.data->set_ready(stream_->record());
  if (!is_partial()) table.field.owner = nullptr;  // the host's memory is done with
}

// Many with one copy.
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

// One before it whose values are the same: two views of one field.
const ResidentSet::Table* ResidentSet::twin_of(const Table& table) const {
  for (const auto& other : tables_) {
    if (other.get() == &table) break;
    if (other->field.values == table.field.values && table.field.values) return other.get();
    if (table.field.pictures && other->edited && table.edited &&
        other->edited->source == table.edited->source) {
      return other.get();
    }
  }
  return nullptr;
}

// On the device for resizing a batch, about: its pictures, and what is between the passes.
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

// What the kernel looks values up in.
void ResidentSet::load_steps(Table& table) {
  table.edits = device_->allocate(size_t(options_.batch_rows) * sizeof(PictureEdit));
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

Batch ResidentSet::take(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t batch,
                        BatchRange range) {
  choose(sampler, seed, epoch, range);
  Batch out{static_cast<int64_t>(epoch), batch, rows_.count, {}};
  uint8_t* stage = nullptr;
  if (options_.steps) options_.steps->begin(seed, epoch, range.begin, rows_.count, rows_.indices);
  for (auto& table : tables_) {
    if (table->resized) plan_resize_of(*table);
  }
  if (const size_t bytes = staged_bytes(); bytes > 0) {
    stage = static_cast<uint8_t*>(staging_.take(bytes));
  }
  const bool staged = stage != nullptr;
  indices_ = stage_indices(stage);
  std::vector<std::shared_ptr<DeviceLease>> leases;
  for (auto& table : tables_) out.fields.push_back(make_field(*table, stage, leases));
  const EventPtr ready = stream_->record();
  if (staged) staging_.fence(ready);
  for (const auto& lease : leases) lease->set_ready(ready);
  return out;
}

// Which records they are, and their numbers where a kernel cannot find them itself.
void ResidentSet::choose(const Sampler& sampler, uint64_t seed, uint64_t epoch, BatchRange range) {
  rows_.begin = range.begin;
  rows_.count = range.size();
  rows_.epoch_size = sampler.size();
  rows_.in_order = sampler.in_order();
  rows_.order = sampler.permutation(seed, epoch);
  rows_.indices.clear();
  rows_.places.clear();
  const bool any_id = std::any_of(tables_.begin(), tables_.end(), [](const auto& table) {
    return table->field.origin == OutputOrigin::kId;
  });
  const bool by_kernel = rows_.in_order || rows_.order;
  const bool resizes = options_.steps && options_.steps->resizes();
  if (by_kernel && !any_id && !is_partial() && !resizes) return;
  rows_.indices.resize(size_t(rows_.count));
  wrapped_indices(sampler, seed, epoch, rows_.begin, rows_.epoch_size, rows_.indices);
  int64_t streamed = 0;
  for (const int64_t index : rows_.indices) {
    rows_.places.push_back(index < on_device_ ? index : on_device_ + streamed++);
  }
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

BatchField ResidentSet::make_field(Table& table, uint8_t*& stage,
                                   std::vector<std::shared_ptr<DeviceLease>>& leases) {
  const ResidentField& field = table.field;
  BatchField out = field.batch_field(rows_.count);
  out.is_on_device = true;
  if (options_.view && field.has_values()) {
    out.view.data = const_cast<uint8_t*>(table.values) + size_t(rows_.begin) * table.row_bytes();
    out.lease = table.data;
    return out;
  }
  std::shared_ptr<DeviceLease> lease = lease_of(table);
  out.view.data = lease->memory();
  fill(table, static_cast<uint8_t*>(lease->memory()), stage);
  leases.push_back(lease);
  out.lease = std::move(lease);
  return out;
}

std::shared_ptr<DeviceLease> ResidentSet::lease_of(Table& table) {
  const size_t bytes = size_t(options_.batch_rows) * table.field.record_bytes();
  Slab slab = table.batches->take(bytes, *stream_, false);
  if (!slab.memory) {
    slab = table.batches->take(bytes, *stream_, true);
    ++beyond_;
  }
  return std::make_shared<DeviceLease>(table.batches, std::move(slab));
}

void ResidentSet::fill(const Table& table, uint8_t* to, uint8_t*& stage) {
  const size_t count = size_t(rows_.count);
  if (!table.field.has_values()) {
    if (table.field.origin == OutputOrigin::kId) {
      std::memcpy(stage, rows_.indices.data(), count * 8);
    } else {
      for (size_t row = 0; row < count; ++row) {
        stage[row] = rows_.begin + int64_t(row) < rows_.epoch_size;
      }
    }
    stream_->copy(to, stage, count * table.row_bytes());
    stage += staged_size(count * table.row_bytes());
    return;
  }
  if (is_partial()) stage_rows(table, stage);
  if (table.edited) stage_edits(table, stage);
  if (table.resized) {
    resize(table, stage);
    return edit(table, RowChoice::slice(0), to, 0, rows_.count);
  }
  if (indices_ && !rows_.indices.empty() && (is_partial() || !rows_.in_order)) {
    return gather(table, RowChoice::indices(indices_), to, 0, rows_.count);
  }
  for (int64_t done = 0; done < rows_.count;) {
    const int64_t position = (rows_.begin + done) % rows_.epoch_size;
    const int64_t run = std::min(rows_.count - done, rows_.epoch_size - position);
    const RowChoice choice =
        rows_.in_order ? RowChoice::slice(position) : RowChoice::shuffled(*rows_.order, position);
    gather(table, choice, to, done, run);
    done += run;
  }
}

// Rows [done, done + count) of the batch that begins at `to`.
void ResidentSet::gather(const Table& table, const RowChoice& choice, uint8_t* to, int64_t done,
                         int64_t count) {
  if (table.edited) return edit(table, choice, to, done, count);
  const auto bytes = static_cast<int64_t>(table.row_bytes());
  to += size_t(done * bytes);
  const bool slice = rows_.in_order && !is_partial();
  if (slice) {
    queue(*stream_, GatherRows::slice(table.values, bytes, choice(0), to, count));
  } else {
    queue(*stream_, GatherRows(table.values, bytes, choice, to, count));
  }
}

// The rows of the batch, as bytes of the size that they are delivered in.
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
      // The device has failed, and says so by what is thrown: nothing of it reads any more.
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

// Of what goes to the device with a batch, beside the data that is there.
size_t ResidentSet::staged_bytes() const {
  const auto count = static_cast<size_t>(rows_.count);
  const auto streamed =
      static_cast<size_t>(std::count_if(rows_.indices.begin(), rows_.indices.end(),
                                        [this](int64_t index) { return index >= on_device_; }));
  size_t bytes = rows_.indices.empty() ? 0 : staged_size(count * 8);
  for (const auto& table : tables_) {
    const bool has_values = table->field.has_values();
    bytes += staged_size((has_values ? streamed : count) * table->row_bytes());
    if (table->edited) bytes += staged_size(count * sizeof(PictureEdit));
    if (table->resized) bytes += staged_size(size_t(upload_bytes(table->plan)));
  }
  return bytes;
}

// The numbers that the gather uses: of the resident rows, and of those after them.
const int64_t* ResidentSet::stage_indices(uint8_t*& stage) {
  if (rows_.indices.empty()) return nullptr;
  const size_t bytes = rows_.places.size() * 8;
  std::memcpy(stage, rows_.places.data(), bytes);
  stream_->copy(device_indices_.get(), stage, bytes);
  stage += staged_size(bytes);
  return static_cast<const int64_t*>(device_indices_.get());
}

// The rows of the batch that are not resident, moved to after those that are. The stream makes the
// next batch's wait until this one's are gathered.
void ResidentSet::stage_rows(const Table& table, uint8_t*& stage) {
  const size_t bytes = table.row_bytes();
  size_t streamed = 0;
  for (int64_t index : rows_.indices) {
    if (index < on_device_ || bytes == 0) continue;
    std::memcpy(stage + streamed++ * bytes, table.field.values + size_t(index) * bytes, bytes);
  }
  if (streamed == 0) return;
  stream_->copy(table.streamed, stage, streamed * bytes);
  stage += staged_size(streamed * bytes);
}

ResidentStats ResidentSet::stats() const {
  ResidentStats stats;
  stats.beyond = beyond_;
  for (const auto& table : tables_) {
    stats.data_bytes += table->bytes;
    stats.batch_bytes += table->batches->bytes();
    if (!table->resized) continue;
    stats.batch_bytes += size_t(options_.batch_rows) * table->resized_bytes();
    stats.batch_bytes += table->work->bytes();
  }
  return stats;
}

}  // namespace headrace
