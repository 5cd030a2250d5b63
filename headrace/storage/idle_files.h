// SPDX-License-Identifier: Apache-2.0
// Limits the files of the process that remain open between reads, and closes the least recently
// read file when another needs its descriptor. The limit depends on that of the process (ulimit
// -n); Headrace leaves at least half of it to other code.
//
// All members may be called from any thread; they never wait for a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/mutex.h"

namespace headrace {

class IdleFiles {
 public:
  // A set of files, each of which can be closed while it is not being read.
  class Owner {
   public:
    virtual ~Owner() = default;
    // The time (tick()) when the least recently read file was read; kNone: none can be closed.
    virtual uint64_t oldest() const = 0;
    // Closes that file. False: it is being read now.
    virtual bool close_oldest() = 0;
  };
  static constexpr uint64_t kNone = UINT64_MAX;

  static IdleFiles& of_process();
  static uint64_t tick();  // a logical clock: each value is greater than the previous ones

  void add(Owner* owner) EXCLUDES_LOCK(mutex_);
  void remove(Owner* owner) EXCLUDES_LOCK(mutex_);  // after its files are closed
  // Whether `files` more may remain open. If so, they are counted until release().
  bool reserve(size_t files) EXCLUDES_LOCK(mutex_);
  void release(size_t files) EXCLUDES_LOCK(mutex_);
  // Must be called before a file is opened: closes others if too many are open. Must be matched by
  // a call of closed().
  void opening() EXCLUDES_LOCK(mutex_);
  void closed() EXCLUDES_LOCK(mutex_);
  // Closes the least recently read file, of any owner. False: none can be closed.
  bool close_one() EXCLUDES_LOCK(mutex_);

 private:
  bool close_oldest() REQUIRES_LOCK(mutex_);

  Mutex mutex_;
  std::vector<Owner*> owners_ GUARDED_BY(mutex_);
  size_t open_ GUARDED_BY(mutex_) = 0, reserved_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
