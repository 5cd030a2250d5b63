// SPDX-License-Identifier: Apache-2.0
// Warnings of a loader while it delivers batches. Each warning is issued once, or once per epoch,
// regardless of how many batches it applies to.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "headrace/loader/work_placement.h"

namespace headrace {

class Warnings {
 public:
  // warn: may throw, because users can turn warnings into errors; null: no warnings.
  explicit Warnings(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  void of_cache(const std::string& caution) const;
  // A file that cached records were read from has changed.
  void changed_file(const std::string& path);
  // This many images were delivered as stored, though their Exif tags rotate or mirror them: boxes
  // depend on that, and so does what a network learns about orientation.
  void ignored_orientations(int64_t images);
  // If the device was asked to decode, and most images are left to the CPU.
  void left_to_cpu(const WorkPlacement& placement, const LoaderOptions& options, bool at_end);
  // At the end of an epoch.
  void repaired(int64_t images, int64_t epoch) const;

 private:
  const std::function<void(const std::string&)> warn_;
  bool warned_changed_ = false, warned_orientation_ = false, warned_left_to_cpu_ = false;
};

}  // namespace headrace
