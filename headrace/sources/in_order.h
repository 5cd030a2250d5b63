// SPDX-License-Identifier: Apache-2.0
// A parallel loop over numbers 0, 1, 2, ... whose results are delivered in order to one consumer:
// packing, unpacking, scans.
//
// For long operations outside of a loader (which has its own threads). Results wait in memory, up
// to a limit; exceptions of `work` are rethrown in order, like results.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/base/signals.h"

namespace headrace {

template <class Item>
class InOrder {
 public:
  // Called once per thread; only that thread calls the result.
  using MakeWork = std::function<std::function<Item(int64_t)>()>;

  InOrder(int64_t first, int64_t end, size_t max_bytes)
      : end_(end), max_bytes_(max_bytes), next_(first), awaited_(first) {}

  // `size_of`: an item's size in bytes, or the cost of making it: small items are claimed many at
  // once. `take` and `tick` are called on the calling thread, `tick` also while there is nothing to
  // take; their exceptions end the work and are passed on.
  void run(int threads, const MakeWork& make_work,
           const std::function<size_t(const Item&)>& size_of, const std::function<void(Item)>& take,
           const std::function<void(int64_t)>& tick) {
    threads_ = threads;
    Joiner joiner{*this, {}};
    for (int i = 0; i < threads; ++i) {
      const BlockedSignals blocked;
      joiner.threads.emplace_back([this, &make_work, &size_of] { work_loop(make_work, size_of); });
    }
    while (awaited_ < end_) {
      Run run = next_run(tick);
      for (Item& item : run.items) take(std::move(item));
      if (run.failure) std::rethrow_exception(run.failure);
      tick(awaited_);
    }
  }

 private:
  static constexpr size_t kRunBytes = size_t{1} << 20;
  static constexpr int64_t kLongestRun = 64;

  struct Run {
    std::vector<Item> items;
    size_t bytes = 0;
    std::exception_ptr failure;  // for the number after the items
  };
  struct Joiner {
    InOrder& owner;
    std::vector<std::thread> threads;
    ~Joiner() {
      owner.stop();
      for (std::thread& thread : threads) thread.join();
    }
  };

  void stop() EXCLUDES_LOCK(mutex_) {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }

  // Small items are claimed many at once, and fewer towards the end, so that all threads finish
  // together.
  int64_t run_length() const REQUIRES_LOCK(mutex_) {
    if (items_ == 0) return 1;
    const auto fitting = static_cast<int64_t>(kRunBytes / (bytes_ / items_ + 1));
    const int64_t share = (end_ - next_) / (2 * threads_);
    return std::clamp<int64_t>(std::min(fitting, share), 1, kLongestRun);
  }

  void work_loop(const MakeWork& make_work, const std::function<size_t(const Item&)>& size_of) {
    std::function<Item(int64_t)> work;
    mutex_.lock();
    while (!stopping_ && next_ < end_) {
      if (held_ >= max_bytes_) {
        changed_.wait(mutex_);
        continue;
      }
      const int64_t begin = next_, end = std::min(end_, begin + run_length());
      next_ = end;
      mutex_.unlock();
      Run run;
      try {
        if (!work) work = make_work();
        for (int64_t i = begin; i < end && !stopping_; ++i) {
          run.items.push_back(work(i));
          run.bytes += size_of(run.items.back());
        }
      } catch (...) {
        run.failure = std::current_exception();
      }
      mutex_.lock();
      held_ += run.bytes;
      bytes_ += run.bytes;
      items_ += run.items.size();
      const bool failed = run.failure != nullptr;
      try {
        done_.emplace(begin, std::move(run));
      } catch (...) {  // out of memory: these results will never arrive
        lost_ = std::current_exception();
      }
      changed_.notify_all();
      if (failed || lost_) next_ = end_;  // later items are not needed
    }
    mutex_.unlock();
  }

  Run next_run(const std::function<void(int64_t)>& tick) EXCLUDES_LOCK(mutex_) {
    for (;;) {
      {
        MutexLock lock(mutex_);
        auto found = done_.find(awaited_);
        if (found == done_.end()) {
          changed_.wait_for(mutex_, std::chrono::milliseconds(50));
          found = done_.find(awaited_);
        }
        if (found == done_.end() && lost_) std::rethrow_exception(lost_);
        if (found != done_.end()) {
          Run run = std::move(found->second);
          done_.erase(found);
          held_ -= run.bytes;
          awaited_ += static_cast<int64_t>(run.items.size());
          changed_.notify_all();
          return run;
        }
      }
      tick(awaited_);
    }
  }

  const int64_t end_;
  const size_t max_bytes_;
  Mutex mutex_;
  Condition changed_;
  std::map<int64_t, Run> done_ GUARDED_BY(mutex_);                      // by first number
  std::exception_ptr lost_ GUARDED_BY(mutex_);                          // why results are missing
  int64_t next_ GUARDED_BY(mutex_);                                     // the next one to claim
  size_t held_ GUARDED_BY(mutex_) = 0;                                  // bytes in done_
  size_t bytes_ GUARDED_BY(mutex_) = 0, items_ GUARDED_BY(mutex_) = 0;  // totals so far
  std::atomic<bool> stopping_{false};
  int threads_ = 1;  // set before any thread starts
  int64_t awaited_;  // used by the calling thread only
};

// Files of an asynchronous storage that are opened concurrently: these threads wait for the
// storage, not for a core.
constexpr int64_t kFarFilesAtOnce = 32;

// InOrder for large pieces of work on numbers [first, end), such as files, with at most `threads`
// threads: each number is claimed separately, and any number of results may wait.
template <class Work, class Take>
void each_in_order(
    int64_t first, int64_t end, int64_t threads, const Work& work, const Take& take,
    const std::function<void(int64_t)>& tick = [](int64_t) {}) {
  using Item = std::decay_t<std::invoke_result_t<const Work&, int64_t>>;
  InOrder<Item>(first, end, SIZE_MAX)
      .run(
          static_cast<int>(std::min(threads, end - first)), [&] { return work; },
          [](const Item&) { return size_t{1} << 20; }, take, tick);
}

}  // namespace headrace
