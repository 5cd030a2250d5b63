// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/resident_set.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/delivery/resident_table.h"
#include "headrace/device/device.h"
#include "headrace/kernels/batch/gather_rows.h"
#include "headrace/kernels/batch/queue.h"
#include "headrace/sampling/sampler.h"

namespace headrace {
namespace {

const ErrorCode kNoRoom{
    "HR0891", ErrorKind::kResource, "the data does not fit on the device",
    "Data that stays on a device permanently takes memory there, in addition to the batches made "
    "from it, the model, and the framework's cache; the message gives the numbers. fraction= keeps "
    "only part of it on the device and copies the other records from the host when needed: same "
    "order, same batches. uint8 takes a quarter of the memory of float32, so convert in the "
    "transforms, which run for each batch."};

}  // namespace

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
    if (!has_values || device_copy_of(*table)) table->bytes = 0;
    table->batches = std::make_shared<DeviceRing>(device_, kBatches);
    tables_.push_back(std::move(table));
  }
  check_room();
  for (auto& table : tables_) load(*table);
  arena_batches_ = batches_in_arena();
  for (auto& table : tables_) {
    if (table->edited) table->edits = device_->allocate(size_t(max_rows()) * sizeof(PictureEdit));
  }
  device_indices_ = device_->allocate(size_t(max_rows()) * 8);
  if (arena_batches_ > 0 && options_.steps) {
    edits_ahead_ = std::make_unique<EditsAhead>(options_.steps, options_.threads);
  }
}

ResidentSet::~ResidentSet() {
  try {
    stream_->synchronize();
  } catch (const Exception&) {
    // The device has failed, and reports that at its next use: it no longer reads this memory.
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
                                         " keeps as much as fits, and copies the rest when needed"
                                   : "use a smaller batch_size, or a Loader without resident=");
}

void ResidentSet::load(Table& table) {
  if (!table.field.has_values()) return;
  if (table.edited) load_steps(table);
  if (const Table* const twin = device_copy_of(table)) {
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
  // A ring for this slab alone, because a ring knows how to free memory that is still being read.
  auto ring = std::make_shared<DeviceRing>(device_, 1);
  table.data = make_lease(std::move(ring), std::move(slab));
  table.data->set_ready(stream_->record());
  if (!is_partial()) table.field.owner = nullptr;  // the host's memory is no longer needed
}

// An earlier field with the same values: two views of one field.
const ResidentSet::Table* ResidentSet::device_copy_of(const Table& table) const {
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

Batch ResidentSet::take(const Sampler& sampler, uint64_t seed, uint64_t epoch, int64_t batch,
                        BatchRange range) {
  choose(sampler, seed, epoch, {range});
  if (options_.steps) options_.steps->begin(seed, epoch, range.begin, rows_.count, rows_.indices);
  return {static_cast<int64_t>(epoch), batch, rows_.count, cut(options_.batch_rows)};
}

std::vector<BatchField> ResidentSet::cut(int64_t slab_rows) {
  std::vector<BatchField> fields;
  uint8_t* stage = nullptr;
  for (auto& table : tables_) {
    if (table->resized) plan_resize_of(*table);
  }
  if (const size_t bytes = staged_bytes(); bytes > 0) {
    stage = static_cast<uint8_t*>(staging_.take(bytes));
  }
  const bool staged = stage != nullptr;
  indices_ = stage_indices(stage);
  std::vector<std::shared_ptr<DeviceLease>> leases;
  const auto queued = [&] {
    const EventPtr ready = stream_->record();
    if (staged) staging_.fence(ready);
    for (const auto& lease : leases) lease->set_ready(ready);
  };
  try {
    for (auto& table : tables_) fields.push_back(make_field(*table, slab_rows, stage, leases));
  } catch (...) {
    try {
      queued();
    } catch (const Exception&) {
      // The device has failed, and reports that by an exception elsewhere: it no longer reads this
      // memory.
    }
    throw;
  }
  queued();
  return fields;
}

// Chooses the records, and computes their numbers if a kernel cannot derive them.
void ResidentSet::choose(const Sampler& sampler, uint64_t seed, uint64_t epoch,
                         std::vector<BatchRange> positions) {
  rows_.positions = std::move(positions);
  rows_.count = 0;
  for (const BatchRange& range : rows_.positions) rows_.count += range.size();
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
  std::span<int64_t> left(rows_.indices);
  for (const BatchRange& range : rows_.positions) {
    wrapped_indices(sampler, seed, epoch, range.begin, rows_.epoch_size,
                    left.first(size_t(range.size())));
    left = left.subspan(size_t(range.size()));
  }
  int64_t streamed = 0;
  for (const int64_t index : rows_.indices) {
    rows_.places.push_back(index < on_device_ ? index : on_device_ + streamed++);
  }
}

BatchField ResidentSet::make_field(Table& table, int64_t slab_rows, uint8_t*& stage,
                                   std::vector<std::shared_ptr<DeviceLease>>& leases) {
  const ResidentField& field = table.field;
  BatchField out = field.batch_field(rows_.count);
  out.is_on_device = true;
  if (options_.view && field.has_values()) {
    out.view.data = const_cast<uint8_t*>(table.values) +
                    size_t(rows_.positions.front().begin) * table.row_bytes();
    out.lease = table.data;
    return out;
  }
  leases.push_back(lease_of(table, slab_rows));
  void* const memory = leases.back()->memory();
  out.view.data = memory;
  out.lease = leases.back();
  fill(table, static_cast<uint8_t*>(memory), stage);
  return out;
}

std::shared_ptr<DeviceLease> ResidentSet::lease_of(Table& table, int64_t slab_rows) {
  const size_t bytes = size_t(slab_rows) * table.field.record_bytes();
  Slab slab = table.batches->take(bytes, *stream_, false);
  if (!slab.memory) {
    slab = table.batches->take(bytes, *stream_, true);
    beyond_ += std::max<int64_t>(slab_rows / options_.batch_rows, 1);
  }
  return make_lease(table.batches, std::move(slab));
}

void ResidentSet::fill(const Table& table, uint8_t* to, uint8_t*& stage) {
  const size_t count = size_t(rows_.count);
  if (!table.field.has_values()) {
    if (table.field.origin == OutputOrigin::kId) {
      std::memcpy(stage, rows_.indices.data(), count * 8);
    } else {
      uint8_t* valid = stage;
      for (const BatchRange& range : rows_.positions) {
        for (int64_t p = range.begin; p < range.end; ++p) *valid++ = p < range.valid_end;
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
  int64_t done = 0;
  for (const BatchRange& range : rows_.positions) {
    for (int64_t at = range.begin; at < range.end;) {
      const int64_t position = at % rows_.epoch_size;
      const int64_t run = std::min(range.end - at, rows_.epoch_size - position);
      const RowChoice choice =
          rows_.in_order ? RowChoice::slice(position) : RowChoice::shuffled(*rows_.order, position);
      gather(table, choice, to, done, run);
      done += run;
      at += run;
    }
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

// Bytes sent to the device with a batch, in addition to the data that is there.
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

// The numbers that the gather uses: those of the resident rows, then those of the others.
const int64_t* ResidentSet::stage_indices(uint8_t*& stage) {
  if (rows_.indices.empty()) return nullptr;
  const size_t bytes = rows_.places.size() * 8;
  std::memcpy(stage, rows_.places.data(), bytes);
  stream_->copy(device_indices_.get(), stage, bytes);
  stage += staged_size(bytes);
  return static_cast<const int64_t*>(device_indices_.get());
}

// Copies the rows of the batch that are not resident to the memory after the resident ones. The
// stream makes those of the next batch wait until this batch has been gathered.
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
