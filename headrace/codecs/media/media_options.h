// SPDX-License-Identifier: Apache-2.0
// The user's options for the process that decodes (media_process.h).
#pragma once

#include <atomic>

namespace headrace {

struct MediaOptions {
  bool isolate = true;
  double seconds = 60;  // limit of a call
  // Set by who wants nothing any more: a call that waits then ends with HR0369.
  const std::atomic<bool>* stop = nullptr;
};

}  // namespace headrace
