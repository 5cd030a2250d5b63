// SPDX-License-Identifier: Apache-2.0
// Files that stay open between two reads, of the whole process: how many may, and which one is
// closed when another file needs its descriptor. The process's own limit (ulimit -n) decides, of
// which Headrace leaves at least half to others.
//
// All members may be called from any thread; none waits for a file.
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
    // When the file that was not read for longest was read (by tick()); kNone: none can be closed.
    virtual uint64_t oldest() const = 0;
    // Closes it. False: it is being read now.
    virtual bool close_oldest() = 0;
  };
  static constexpr uint64_t kNone = UINT64_MAX;

  static IdleFiles& of_process();
  static uint64_t tick();  // a time: each is later than those before

  void add(Owner* owner) EXCLUDES_LOCK(mutex_);
  void remove(Owner* owner) EXCLUDES_LOCK(mutex_);  // after its files are closed
  // Whether so many files more may stay open for good. What is granted is given back by release().
  bool reserve(size_t files) EXCLUDES_LOCK(mutex_);
  void release(size_t files) EXCLUDES_LOCK(mutex_);
  // Before one more is opened: closes others where too many are open. To be answered by closed().
  void opening() EXCLUDES_LOCK(mutex_);
  void closed() EXCLUDES_LOCK(mutex_);
  // Closes the file that was not read for longest, whosever it is. False: none can be closed.
  bool close_one() EXCLUDES_LOCK(mutex_);

 private:
  bool close_oldest() REQUIRES_LOCK(mutex_);

  Mutex mutex_;
  std::vector<Owner*> owners_ GUARDED_BY(mutex_);
  size_t open_ GUARDED_BY(mutex_) = 0, reserved_ GUARDED_BY(mutex_) = 0;
};

}  // namespace headrace
