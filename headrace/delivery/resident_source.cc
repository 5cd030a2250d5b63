// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/resident_source.h"

#include <algorithm>
#include <cstring>

#include "headrace/executor/engine.h"
#include "headrace/executor/memory/slots.h"

namespace headrace {
namespace {

constexpr size_t kBatchBytes = size_t{4} << 20;  // reserved while records are made
constexpr int64_t kMaxRows = 256;
constexpr size_t kSourcePageBytes = size_t{8} << 20;
constexpr int64_t kMaxBad = 10'000;  // maximum number of errors listed

int64_t rows_of(const ResidentFill& fill) {
  const int64_t records = fill.source->size();
  const size_t record = std::max<size_t>({batch_bytes(*fill.plan, 1), fill.record_bytes, 1});
  return std::clamp<int64_t>(static_cast<int64_t>(kBatchBytes / record), 1,
                             std::min(kMaxRows, records));
}

}  // namespace

ResidentSource::ResidentSource(const ResidentFill& fill)
    : SourceAround(fill.source), schema_(fill.schema), held_(schema_.size()) {
  const auto records = static_cast<size_t>(size());
  for (const Output& output : fill.plan->outputs()) {
    if (output.origin != OutputOrigin::kField) continue;
    const auto at = std::ranges::find(schema_, output.name, &Field::name);
    Held& held = held_[static_cast<size_t>(at - schema_.begin())];
    held.is_held = true;
    held.is_dense = !output.as_list;
    held.record_bytes = output.bytes_per_record;
    if (held.is_dense) {
      const size_t bytes = held.record_bytes * records;
      pages_.push_back(make_pages(bytes));
      held.values = static_cast<uint8_t*>(pages_.back().get());
      bytes_ += bytes;
      continue;
    }
    held.places.resize(records);
    const bool has_shape = !is_string(output.state.kind);
    if (has_shape) held.shapes.resize(records);
    bytes_ += records * (sizeof(held.places[0]) + (has_shape ? sizeof(Shape) + 32 : 0));
  }
}

std::shared_ptr<const ResidentSource> ResidentSource::filled(
    const ResidentFill& fill, std::string& why, const std::function<void()>& interrupted) {
  try {
    return filled_by_engine(fill, why, interrupted);
  } catch (const Exception& exception) {
    // There is too little memory to make the records: a limit, not a fault of the data.
    if (exception.error().code->kind != ErrorKind::kConfig) throw;
    why = exception.error().what;
    return nullptr;
  }
}

std::shared_ptr<const ResidentSource> ResidentSource::filled_by_engine(
    const ResidentFill& fill, std::string& why, const std::function<void()>& interrupted) {
  const std::shared_ptr<ResidentSource> out(new ResidentSource(fill));
  const int64_t records = fill.source->size();
  BadRecords bad(INT64_MAX, 1.0, {});
  Engine engine({.task = {.source = fill.source,
                          .plan = fill.plan,
                          .sampler = sequential(records),
                          .layout = BatchLayout(records, rows_of(fill), 0, 1, LastBatch::kKeep),
                          .on_error = OnError::kSkip},
                 .threads = fill.threads,
                 .memory_limit = fill.memory_limit,
                 .warn = fill.warn},
                bad);
  engine.start(0, 0);
  while (const std::optional<Batch> batch = engine.next(interrupted)) {
    if (out->keep(*batch, fill.max_bytes)) continue;
    why = "the first " + std::to_string((batch->index + 1) * rows_of(fill)) + " of " +
          std::to_string(records) + " records take more than " +
          std::to_string(fill.max_bytes >> 20) + " MiB";
    return nullptr;
  }
  if (bad.total() > kMaxBad) {
    why = std::to_string(bad.total()) + " records are bad";
    return nullptr;
  }
  for (BadRecord& failure : bad.list()) {
    if (failure.error.code->kind == ErrorKind::kResource) {
      why = "record " + std::to_string(failure.record) + " has too little memory (" +
            failure.error.what + ")";
      return nullptr;
    }
    // As a resident picture it is bad; streamed, only crops that need the missing rows are.
    if (failure.error.code->id == "HR0385") {
      why = "record " + std::to_string(failure.record) +
            " lacks rows, so whether a crop is bad is only known when it is drawn (" + failure.key +
            ")";
      return nullptr;
    }
    out->failures_.emplace(failure.record, std::move(failure.error));
  }
  return out;
}

bool ResidentSource::keep(const Batch& batch, size_t max_bytes) {
  const auto* ids = static_cast<const int64_t*>(batch["id"].view.data);
  const std::span<const int64_t> records(ids, static_cast<size_t>(batch.size));
  for (const BatchField& field : batch.fields) {
    const auto at = std::ranges::find(schema_, field.name, &Field::name);
    if (at == schema_.end()) continue;
    Held& held = held_[static_cast<size_t>(at - schema_.begin())];
    if (!held.is_dense) {
      if (!keep_list(field, records, held, max_bytes)) return false;
      continue;
    }
    const auto* from = static_cast<const uint8_t*>(field.view.data);
    for (int64_t record : records) {
      std::memcpy(held.values + size_t(record) * held.record_bytes, from, held.record_bytes);
      from += held.record_bytes;
    }
  }
  return bytes_ <= max_bytes;
}

bool ResidentSource::keep_list(const BatchField& field, std::span<const int64_t> records,
                               Held& held, size_t max_bytes) {
  for (size_t row = 0; row < records.size(); ++row) {
    const auto record = static_cast<size_t>(records[row]);
    const bool is_string = held.shapes.empty();
    const void* const from =
        is_string ? static_cast<const void*>(field.strings[row].data()) : field.items[row].data;
    const size_t bytes = is_string ? field.strings[row].size() : field.items[row].dense_bytes();
    if (bytes_ + bytes > max_bytes) return false;
    uint8_t* const to = take(bytes);
    if (bytes > 0) std::memcpy(to, from, bytes);
    held.places[record] = {to, bytes};
    if (!is_string) held.shapes[record] = field.items[row].shape;
  }
  return true;
}

uint8_t* ResidentSource::take(size_t bytes) {
  if (bytes > left_) {
    left_ = std::max(bytes, kSourcePageBytes);
    pages_.push_back(make_pages(left_));
    next_ = static_cast<uint8_t*>(pages_.back().get());
  }
  bytes_ += bytes;
  left_ -= bytes;
  return std::exchange(next_, next_ + bytes);
}

void ResidentSource::read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                          std::span<RecordData> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    const auto record = static_cast<size_t>(indices[i]);
    RecordData& data = out[i];
    data.index = indices[i];
    data.result = {};
    data.fields.resize(schema_.size());
    if (!failures_.empty()) {
      if (const auto bad = failures_.find(indices[i]); bad != failures_.end()) {
        data.result = bad->second;
        continue;
      }
    }
    for (size_t field = 0; field < schema_.size(); ++field) {
      FieldData& value = data.fields[field];
      value = {};
      const Held& held = held_[field];
      if (!wanted[field] || !held.is_held) continue;
      if (!held.is_dense) {
        value.bytes = held.places[record];
        if (!held.shapes.empty()) value.shape = held.shapes[record];
        continue;
      }
      const uint8_t* const from = held.values + record * held.record_bytes;
      if (schema_[field].dtype == DType::kInt64 && schema_[field].shape.empty()) {
        std::memcpy(&value.scalar, from, sizeof(value.scalar));
      } else {
        value.bytes = {from, held.record_bytes};
      }
    }
  }
}

ResidentPictures ResidentSource::pictures(size_t field) const {
  const Held& held = held_[field];
  const bool bytes = is_picture(schema_[field].kind) && schema_[field].dtype == DType::kUInt8;
  if (!bytes || held.shapes.empty() || !failures_.empty()) return nullptr;
  std::vector<ResidentPicture> out;
  for (size_t record = 0; record < held.shapes.size(); ++record) {
    const Shape& shape = held.shapes[record];
    out.push_back({held.places[record].data(), {int(shape[1]), int(shape[2])}});
  }
  return std::make_shared<const std::vector<ResidentPicture>>(std::move(out));
}

const uint8_t* ResidentSource::dense_values(size_t field) const {
  const Held& held = held_[field];
  return held.is_dense && failures_.empty() ? held.values : nullptr;
}

}  // namespace headrace
