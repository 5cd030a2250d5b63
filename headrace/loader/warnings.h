// SPDX-License-Identifier: Apache-2.0
// What a loader warns of while it delivers: once each, or once per epoch, however many batches it
// holds for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "headrace/loader/work_placement.h"

namespace headrace {

class Warnings {
 public:
  // warn: may throw, because users can turn warnings into errors; null: nothing is said.
  explicit Warnings(std::function<void(const std::string&)> warn) : warn_(std::move(warn)) {}

  void of_cache(const std::string& caution) const;
  // A file that cached records were read from has changed.
  void changed_file(const std::string& path);
  // This many images were delivered as stored, though their Exif tags rotate or mirror them: boxes
  // depend on it, and what a network learns about up and down.
  void ignored_orientations(int64_t images);
  // If the device was asked to decode, and most images are left to the CPU.
  void left_to_cpu(const WorkPlacement& placement, const LoaderOptions& options, bool at_end);
  // At the end of an epoch.
  void repaired(int64_t images, int64_t epoch) const;

 private:
  const std::function<void(const std::string&)> warn_;
  bool said_changed_ = false, said_orientation_ = false, said_left_to_cpu_ = false;
};

}  // namespace headrace
