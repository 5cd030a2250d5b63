// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/remote_options.h"

#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/base/per_process.h"

namespace headrace {
namespace {

struct Current {
  Mutex mutex;
  std::shared_ptr<const RemoteOptions> options GUARDED_BY(mutex) =
      std::make_shared<const RemoteOptions>();
};

Current& current() {
  static Current* const all = new Current;  // outlives all reads at exit
  return *all;
}

Mutex& mutex_of_options() { return current().mutex; }

const int options_over_fork = free_over_fork<mutex_of_options>();

}  // namespace

std::shared_ptr<const RemoteOptions> remote_options() {
  MutexLock lock(current().mutex);
  return current().options;
}

void set_remote_options(RemoteOptions options) {
  auto made = std::make_shared<const RemoteOptions>(std::move(options));
  MutexLock lock(current().mutex);
  current().options = std::move(made);
}

}  // namespace headrace
