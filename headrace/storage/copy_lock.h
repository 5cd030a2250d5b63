// SPDX-License-Identifier: Apache-2.0
// A file lock held by the process that makes a copy, so that others wait for it instead of making
// the same copy. If files cannot be locked, it has no effect, and processes may make the same copy
// twice, which only costs time.
#pragma once

#include <functional>
#include <string>

namespace headrace {

class CopyLock {
 public:
  // Waits for the lock on the file at this path. `waiting` is called occasionally; an exception
  // from it ends the wait.
  CopyLock(std::string path, const std::function<void()>& waiting);
  ~CopyLock();
  CopyLock(const CopyLock&) = delete;
  CopyLock& operator=(const CopyLock&) = delete;

 private:
  void release();
  std::string path_;
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace headrace
