// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/loader_feed.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/batch/ragged.h"
#include "headrace/executor/memory/slots.h"

namespace headrace {
namespace {

struct Stopped {};

// Values [first, last) along the packed axis, as a separate tensor.
Assembled packed_part(const BatchField& field, int64_t first, int64_t last) {
  RaggedForm form{.dtype = field.view.dtype, .promised = field.view.shape, .packed = true};
  TensorView part = field.view;
  part.strides.assign(part.shape.size(), 1);
  for (size_t axis = part.shape.size(); axis-- > 1;) {
    part.strides[axis - 1] = part.strides[axis] * part.shape[axis];
  }
  part.data = static_cast<uint8_t*>(part.data) +
              size_t(first * part.strides[field.packed_axis]) * size_of(part.dtype);
  part.shape[field.packed_axis] = last - first;
  form.promised[field.packed_axis] = -1;
  return assemble(form, {&part, 1}, make_values);
}

// Rows [first, last) of a field. The lease is shared by all parts.
BatchField rows_of(const BatchField& field, int64_t first, int64_t last) {
  BatchField part = field;
  if (field.is_list) {
    const auto cut = [&](auto& values) {
      if (values.empty()) return;
      values = {values.begin() + first, values.begin() + last};
    };
    cut(part.strings);
    cut(part.items);
    return part;
  }
  if (!field.starts.empty()) {
    const std::span<const int64_t> starts(field.starts.data() + first, size_t(last - first) + 1);
    part.starts.assign(starts.begin(), starts.end());
    for (int64_t& start : part.starts) start -= starts.front();
    if (field.is_offsets) {
      Assembled offsets = tensor_of(part.starts, make_values);
      part.view = std::move(offsets.view);
      part.lease = std::move(offsets.memory);
      return part;
    }
    first = starts.front();
    last = starts.back();
    if (field.packed_axis > 0) {
      Assembled own = packed_part(field, first, last);
      part.view = std::move(own.view);
      part.lease = std::move(own.memory);
      return part;
    }
  }
  if (field.unfinished) {
    part.unfinished = field.unfinished->part(first, last);
    part.view.shape[0] = last - first;
    return part;
  }
  const int64_t row = field.view.shape[0] == 0 ? 0 : field.view.elements() / field.view.shape[0];
  part.view.shape[0] = last - first;
  part.view.data = static_cast<uint8_t*>(field.view.data) + first * row * size_of(field.view.dtype);
  return part;
}

// When a batch was made.
struct Made {
  LoaderState state;
  LoaderMark before;
  uint64_t turn;
};

HostBatch host_batch(Batch batch, const Made& made) {
  HostBatch out;
  out.slots_left = batch.slots_left;
  for (BatchField& field : batch.fields) {
    if (field.is_list) continue;
    out.tensors.push_back(
        {field.view, std::move(field.lease), field.is_pinned, std::move(field.unfinished)});
  }
  out.name = "batch " + std::to_string(batch.index) + " of epoch " + std::to_string(batch.epoch);
  out.rest =
      std::make_shared<FedBatch>(FedBatch{std::move(batch), made.state, made.before, made.turn});
  return out;
}

// Divides a batch by rows, one part per device.
std::list<HostBatch> divide(const Batch& batch, const Made& made, int64_t parts) {
  std::list<HostBatch> divided;
  const auto begin_of = [&](int64_t part) {
    const int64_t row = batch.size * part / parts;
    const std::vector<int64_t>& begins = batch.group_begins;
    if (begins.empty() || row >= batch.size) return row;
    return *std::prev(std::ranges::upper_bound(begins, row));  // the first offset is 0
  };
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = begin_of(part), last = begin_of(part + 1);
    Batch own{batch.epoch, batch.index, last - first, {}};
    own.slots_left = batch.slots_left;
    for (const BatchField& field : batch.fields) {
      own.fields.push_back(parts == 1 ? field : rows_of(field, first, last));
    }
    divided.push_back(host_batch(std::move(own), made));
  }
  return divided;
}

}  // namespace

SharedBatches::SharedBatches(std::shared_ptr<Loader> loader, int parts, int max_ahead)
    : loader_(std::move(loader)),
      parts_(parts),
      max_ahead_(max_ahead),
      of_(static_cast<size_t>(parts)) {
  loader_->prepare();
}

std::optional<HostBatch> SharedBatches::next(int part, const std::function<bool()>& stopping) {
  while (!stopping()) {
    bool takes = false;
    uint64_t turn = 0;
    {
      MutexLock lock(mutex_);
      Part& mine = of_[static_cast<size_t>(part)];
      const bool knows = mine.turn == turn_;
      if (knows && !mine.waiting.empty()) {
        HostBatch batch = std::move(mine.waiting.front());
        mine.waiting.pop_front();
        changed_.notify_all();
        return batch;
      }
      if (knows && error_) std::rethrow_exception(error_);
      if (knows && over_) return std::nullopt;
      const auto too_far = [&](const Part& other) {
        return static_cast<int>(other.waiting.size()) >= max_ahead_;
      };
      takes = knows && !taking_ && std::none_of(of_.begin(), of_.end(), too_far);
      taking_ |= takes;
      turn = turn_;
      if (!takes) changed_.wait_for(mutex_, kWaitSlice);
    }
    if (takes && !take_one(turn, stopping)) return std::nullopt;
  }
  return std::nullopt;
}

// The thread that uses the loader is notified, too, and leaves it soon.
void SharedBatches::again(int part, const FedBatch& batch) {
  {
    MutexLock lock(mutex_);
    while (taking_) changed_.wait_for(mutex_, kWaitSlice);
    of_[static_cast<size_t>(part)].turn = batch.turn + 1;
    if (batch.turn != turn_) return;
    ++turn_;
    for (Part& one : of_) one.waiting.clear();
    error_ = nullptr;
    over_ = false;
    taking_ = true;
  }
  std::exception_ptr error;
  try {
    loader_->go_back(batch.before);
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  taking_ = false;
  error_ = error;
  changed_.notify_all();
}

// False if nothing waits any more.
bool SharedBatches::take_one(uint64_t turn, const std::function<bool()>& stopping) {
  std::list<HostBatch> divided;  // empty at the end
  std::exception_ptr error;
  bool stopped = false;
  try {
    const LoaderMark before = loader_->mark();
    const std::optional<Batch> batch = loader_->next([&] {
      if (stopping()) throw Stopped{};
    });
    if (batch) divided = divide(*batch, {loader_->state(), before, turn}, parts_);
  } catch (const Stopped&) {
    stopped = true;
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  taking_ = false;
  changed_.notify_all();
  if (stopped) return false;
  error_ = error;
  over_ = divided.empty();
  for (Part& one : of_) {  // without an allocation, so that either all parts get theirs or none
    if (over_) break;
    one.waiting.splice(one.waiting.end(), divided, divided.begin());
  }
  return true;
}

}  // namespace headrace
