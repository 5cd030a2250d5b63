// SPDX-License-Identifier: Apache-2.0
// The user's options for the decoding process (media_process.h).
#pragma once

#include <atomic>

namespace headrace {

struct MediaOptions {
  bool isolate = true;
  double seconds = 60;  // limit per call
  // Set by the owner to cancel: a waiting call then ends with HR0369.
  const std::atomic<bool>* stop = nullptr;
};

}  // namespace headrace
