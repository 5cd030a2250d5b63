// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/threads/parallel_for.h"

#include <algorithm>
#include <utility>

namespace headrace {

void ParallelFor::run(size_t count, const std::function<void(size_t)>& body) {
  if (count == 1) return body(0);
  {
    MutexLock lock(mutex_);
    body_ = &body;
    begun_ = 0;
    count_ = count;
    errors_.assign(count, nullptr);
  }
  helpers_.wake_for(count);
  while (run_one()) {
  }
  std::vector<std::exception_ptr> errors;
  {
    MutexLock lock(mutex_);
    while (active_ > 0) idle_.wait(mutex_);
    count_ = 0;
    errors.swap(errors_);
  }
  const auto failed =
      std::ranges::find_if(errors, [](const auto& error) { return error != nullptr; });
  if (failed != errors.end()) std::rethrow_exception(*failed);
}

bool ParallelFor::work(Renderer&) { return run_one(); }

// False if all calls of the body have begun.
bool ParallelFor::run_one() {
  const std::function<void(size_t)>* body;
  size_t round;
  {
    MutexLock lock(mutex_);
    if (begun_ >= count_) return false;
    round = begun_++;
    body = body_;
    ++active_;
  }
  std::exception_ptr error;
  try {
    (*body)(round);
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(mutex_);
  errors_[round] = std::move(error);  // moved, so that the caller frees it
  if (--active_ == 0) idle_.notify_all();
  return true;
}

}  // namespace headrace
