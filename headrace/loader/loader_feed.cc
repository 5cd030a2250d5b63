// SPDX-License-Identifier: Apache-2.0
#include "headrace/loader/loader_feed.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/executor/ragged.h"

namespace headrace {
namespace {

struct Stopped {};

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
      Assembled offsets = tensor_of(part.starts);
      part.view = std::move(offsets.view);
      part.lease = std::move(offsets.memory);
      return part;
    }
    first = starts.front();
    last = starts.back();
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

HostBatch host_batch(Batch batch, const LoaderState& state, const LoaderMark& before) {
  HostBatch out;
  for (BatchField& field : batch.fields) {
    if (field.is_list) continue;
    out.tensors.push_back(
        {field.view, std::move(field.lease), field.is_pinned, std::move(field.unfinished)});
  }
  out.name = "batch " + std::to_string(batch.index) + " of epoch " + std::to_string(batch.epoch);
  out.rest = std::make_shared<FedBatch>(FedBatch{std::move(batch), state, before});
  return out;
}

// By rows, a part for each device.
std::deque<HostBatch> divide(const Batch& batch, const LoaderState& state, const LoaderMark& before,
                             int64_t parts) {
  std::deque<HostBatch> divided;
  const auto begin_of = [&](int64_t part) {
    const int64_t row = batch.size * part / parts;
    const std::vector<int64_t>& begins = batch.group_begins;
    if (begins.empty() || row >= batch.size) return row;
    return *std::prev(std::ranges::upper_bound(begins, row));  // the first is 0
  };
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = begin_of(part), last = begin_of(part + 1);
    Batch own{batch.epoch, batch.index, last - first, {}};
    for (const BatchField& field : batch.fields) {
      own.fields.push_back(parts == 1 ? field : rows_of(field, first, last));
    }
    divided.push_back(host_batch(std::move(own), state, before));
  }
  return divided;
}

}  // namespace

SharedBatches::SharedBatches(std::shared_ptr<Loader> loader, int parts, int most_ahead)
    : loader_(std::move(loader)),
      parts_(parts),
      most_ahead_(most_ahead),
      waiting_(static_cast<size_t>(parts)) {
  loader_->prepare();
}

std::optional<HostBatch> SharedBatches::next(int part, const std::function<bool()>& stopping) {
  while (!stopping()) {
    bool takes = false;
    {
      MutexLock lock(mutex_);
      std::deque<HostBatch>& mine = waiting_[static_cast<size_t>(part)];
      if (!mine.empty()) {
        HostBatch batch = std::move(mine.front());
        mine.pop_front();
        changed_.notify_all();
        return batch;
      }
      if (error_) std::rethrow_exception(error_);
      if (over_) return std::nullopt;
      const auto too_far = [&](const std::deque<HostBatch>& others) {
        return static_cast<int>(others.size()) >= most_ahead_;
      };
      takes = !taking_ && std::none_of(waiting_.begin(), waiting_.end(), too_far);
      taking_ |= takes;
      if (!takes) changed_.wait_for(mutex_, kWaitSlice);
    }
    if (takes && !take_one(stopping)) return std::nullopt;
  }
  return std::nullopt;
}

void SharedBatches::again(const FedBatch& batch) {
  loader_->go_back(batch.before);
  MutexLock lock(mutex_);
  for (auto& waiting : waiting_) waiting.clear();
  error_ = nullptr;
  over_ = false;
}

// False when nobody waits any more.
bool SharedBatches::take_one(const std::function<bool()>& stopping) {
  std::deque<HostBatch> divided;  // empty at the end
  std::exception_ptr error;
  bool stopped = false;
  try {
    const LoaderMark before = loader_->mark();
    const std::optional<Batch> batch = loader_->next([&] {
      if (stopping()) throw Stopped{};
    });
    if (batch) divided = divide(*batch, loader_->state(), before, parts_);
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
  for (auto& waiting : waiting_) {
    if (over_) break;
    waiting.push_back(std::move(divided.front()));
    divided.pop_front();
  }
  return true;
}

}  // namespace headrace
