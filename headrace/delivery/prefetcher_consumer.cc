// SPDX-License-Identifier: Apache-2.0
// The consumer's side: looks at ready batches, and takes them.
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/delivery/prefetcher.h"
#include "headrace/executor/threads/thread_pool.h"

namespace headrace {

// Note [Batches that are made again]
// A device may find out during its work that it cannot make some rows, because a picture's bytes
// are damaged. So a batch with rows that a device decodes is held back until the device has
// reported whether it is complete. Only the consumer waits for that, when it reaches the batch. An
// incomplete batch goes back to its feed, which makes it again, along with all batches after it: so
// a bad record affects order, counts and policies exactly as without the device. A batch that is
// divided over devices is complete if all its parts are, and goes back as a whole, because a bad
// record may move the rows of other parts.

std::optional<DeviceBatch> Prefetcher::next(const std::function<void()>& interrupted) {
  Prefetcher* const alone = this;
  std::optional<std::vector<DeviceBatch>> batch = next_of_all({&alone, 1}, interrupted);
  if (!batch) return std::nullopt;
  return std::move(batch->front());
}

std::optional<std::vector<DeviceBatch>> next_of_all(std::span<Prefetcher* const> prefetchers,
                                                    const std::function<void()>& interrupted) {
  std::vector<DeviceBatch> parts;
  while (parts.empty()) {
    std::shared_ptr<void> again;
    for (Prefetcher* const one : prefetchers) {
      Prefetcher::Front front = one->look(interrupted);
      if (front.kind == Prefetcher::Front::Kind::kNone) return std::nullopt;
      if (front.kind == Prefetcher::Front::Kind::kNotWhole) again = std::move(front.rest);
    }
    for (Prefetcher* const one : prefetchers) {
      if (again) {
        one->go_back_to(again);
      } else if (std::optional<DeviceBatch> part = one->take()) {
        parts.push_back(std::move(*part));
      } else if (!parts.empty()) {
        return std::nullopt;  // the run was stopped in the meantime
      } else {
        break;
      }
    }
  }
  return parts;
}

Prefetcher::Front Prefetcher::look(const std::function<void()>& interrupted) {
  throw_if_forked();
  const double begin = now();
  bool warned = options_.patience_seconds <= 0;
  while (true) {
    std::exception_ptr failure;
    std::vector<std::string> messages;
    std::optional<Front> front;
    {
      MutexLock lock(mutex_);
      if (!running_) return {};
      if (ready_.empty() && !failure_) {
        consumer_waits_ = true;
        changed_.notify_all();
        changed_.wait_for(mutex_, kWaitSlice);
      }
      if (!running_) return {};
      if (awaits_verdict()) {
        consumer_waits_ = true;
        changed_.notify_all();
      } else if (!ready_.empty()) {
        front = inspect_front();
        consumer_waits_ = false;
        stats_.wait_seconds += now() - begin;
      } else if (failure_) {
        failure = std::exchange(failure_, nullptr);
        running_ = false;
      } else if (!warned && now() - begin > options_.patience_seconds) {
        warned = true;
        messages_.push_back("no batch for " + std::to_string(int(now() - begin)) +
                            " s: " + wait_reason());
      }
      messages.swap(messages_);
    }
    for (const std::string& message : messages) {
      if (options_.warn) options_.warn(message);
    }
    // Moved, so that the consumer frees the exception.
    if (failure) std::rethrow_exception(std::move(failure));
    if (front) return std::move(*front);
    if (!read_verdict() && interrupted) interrupted();
  }
}

Prefetcher::Front Prefetcher::inspect_front() {
  const Ready& front = ready_.front();
  if (front.not_whole) return {Front::Kind::kNotWhole, front.batch->rest};
  if (front.batch) return {Front::Kind::kThere};
  ready_.pop_front();
  running_ = false;
  changed_.notify_all();
  return {};
}

std::optional<DeviceBatch> Prefetcher::take() {
  MutexLock lock(mutex_);
  if (!running_ || ready_.empty() || awaits_verdict()) return std::nullopt;
  if (!ready_.front().batch || ready_.front().not_whole) return std::nullopt;
  std::optional<DeviceBatch> batch = std::move(ready_.front().batch);
  ready_.pop_front();
  changed_.notify_all();
  return batch;
}

void Prefetcher::go_back_to(const std::shared_ptr<void>& rest) {
  std::deque<Ready> dropped;  // leases are released without the lock
  MutexLock lock(mutex_);
  if (!running_) return;
  again_ = rest;
  dropped.swap(ready_);
  changed_.notify_all();
}

bool Prefetcher::awaits_verdict() const {
  return !ready_.empty() && !ready_.front().verdicts.empty();
}

// Reads the verdict on the next batch; false if there is none yet.
bool Prefetcher::read_verdict() {
  std::vector<Verdict> verdicts;
  EventPtr done;
  std::string name;
  uint64_t number = 0;
  {
    MutexLock lock(mutex_);
    if (!running_ || !awaits_verdict()) return false;
    const Ready& front = ready_.front();
    verdicts = front.verdicts;
    done = front.done;
    name = front.name;
    number = front.number;
  }
  std::deque<Ready> dropped;  // leases are released without the lock
  try {
    done->wait_on_host();
  } catch (const Exception& exception) {
    MutexLock lock(mutex_);
    dropped.swap(ready_);
    running_ = false;
    changed_.notify_all();
    throw named(exception, name);
  }
  bool accepted = true;
  for (const Verdict& verdict : verdicts) accepted &= verdict.rows->accepts(verdict.bytes.get());
  MutexLock lock(mutex_);
  if (ready_.empty() || ready_.front().number != number) return true;  // another thread was faster
  ready_.front().verdicts.clear();
  ready_.front().not_whole = !accepted;
  return true;
}

std::string Prefetcher::wait_reason() const {
  switch (stage_) {
    case Stage::kFeed:
      return "the source has not delivered its next batch";
    case Stage::kStaging:
      return "the copies of earlier batches to " + device_->name() + " have not finished";
    case Stage::kRoom:
      return "there is no device memory for the next batch, and none will be freed";
    case Stage::kIdle:
      break;
  }
  return "the prefetcher's thread has ended";
}

}  // namespace headrace
