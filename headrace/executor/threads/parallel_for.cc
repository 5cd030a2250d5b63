// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/threads/parallel_for.h"

#include <algorithm>
#include <utility>

#include "headrace/base/error.h"

namespace headrace {

ParallelFor::~ParallelFor() {
  if (is_member_) ThreadPool::workers().remove(*this);
}

void ParallelFor::run(size_t count, const std::function<void(size_t)>& body) {
  if (count == 1) return body(0);
  {
    MutexLock lock(mutex_);
    body_ = &body;
    begun_ = 0;
    count_ = count;
    errors_.assign(count, nullptr);
  }
  ask_for_help(count);
  while (do_one()) {
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

void ParallelFor::ask_for_help(size_t rounds) {
  if (helpers_ <= 0 || rounds < 2) return;
  if (is_member_) {
    return ThreadPool::workers().wake(int(std::min(rounds - 1, size_t(helpers_))));
  }
  try {
    ThreadPool::workers().add(*this);
    is_member_ = true;
  } catch (const Exception&) {
    helpers_ = 0;  // the system has no thread for it: the caller does it alone
  }
}

bool ParallelFor::work(Renderer&) { return do_one(); }

// False where all rounds have begun.
bool ParallelFor::do_one() {
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
  errors_[round] = std::move(error);  // moved: the caller is the one that frees it
  if (--active_ == 0) idle_.notify_all();
  return true;
}

}  // namespace headrace
