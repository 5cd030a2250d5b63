// SPDX-License-Identifier: Apache-2.0
// Files in memory that respond like remote storage: with latency, limited bandwidth and faults. For
// tests and benchmarks: "memory://NAME/train/a.jpg" is a file of the volume NAME.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "headrace/storage/storage.h"

namespace headrace {

// One request to a volume.
struct MemoryRequest {
  int64_t number = 0;  // counts the requests of the volume, from 0
  std::string_view path;
  uint64_t offset = 0, bytes = 0;
  std::stop_token unneeded = {};  // AsyncRead::unneeded
};

// The fault to simulate.
struct MemoryFault {
  int error_number = 0;        // an errno: transient ones are retried
  uint64_t most = UINT64_MAX;  // maximum bytes of the answer: a short read
  double extra_seconds = 0;    // additional latency
};

struct MemoryBehavior {
  double latency_seconds = 0;   // per request, including stat and list
  double bytes_per_second = 0;  // of the shared connection; 0: no limit
  std::function<MemoryFault(const MemoryRequest&)> fault = {};  // called from any thread
};

// A volume, accessible while this object exists. All members may be called from any thread.
class MemoryVolume {
 public:
  // Throws Exception HR0215 if this name exists.
  explicit MemoryVolume(std::string name, MemoryBehavior behavior = {});
  ~MemoryVolume();
  MemoryVolume(const MemoryVolume&) = delete;
  MemoryVolume& operator=(const MemoryVolume&) = delete;

  // Creates or overwrites a file. `path` is relative. Returns its full path.
  std::string write(const std::string& path, std::span<const uint8_t> bytes);
  std::string write(const std::string& path, std::string_view text);
  void remove(const std::string& path);
  // Copies all files below a folder of any storage.
  void copy_from(const std::string& folder);
  void behave(MemoryBehavior behavior);

  std::string root() const;  // "memory://NAME"
  int64_t requests() const;  // number of read requests
  uint64_t bytes_sent() const;
  int64_t most_under_way() const;  // maximum number of concurrent requests

  struct State;

 private:
  const std::string name_;
  const std::shared_ptr<State> state_;  // shared: reads in progress hold it
};

}  // namespace headrace
