// SPDX-License-Identifier: Apache-2.0
// The jobs of a pass as the host assembles them, as one block of memory that is copied to the
// device.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/pass_jobs.h"

namespace headrace {

template <class Job>
class PassPlan {
 public:
  // Pictures without pixels get no units of work.
  void add(const Job& job) {
    jobs_.push_back(job);
    starts_.push_back(starts_.back() + Job::units(job.planes));
  }
  bool empty() const { return starts_.back() == 0; }

  int64_t bytes() const { return at(nullptr, nullptr); }
  // REQUIRES: room for bytes(), aligned to 256.
  void write(uint8_t* to) const {
    PassJobs<Job> jobs;
    at(to, &jobs);
    if (jobs_.empty()) return;
    std::memcpy(const_cast<Job*>(jobs.jobs), jobs_.data(), jobs_.size() * sizeof(Job));
    std::memcpy(const_cast<uint32_t*>(jobs.starts), starts_.data(), starts_.size() * 4);
  }
  // Jobs of a kernel, read from `bytes` at this address.
  PassJobs<Job> jobs(const uint8_t* there) const {
    PassJobs<Job> out;
    at(const_cast<uint8_t*>(there), &out);
    return out;
  }

 private:
  int64_t at(uint8_t* memory, PassJobs<Job>* out) const {
    MemorySections sections(memory);
    PassJobs<Job> jobs;
    sections.take(jobs.jobs, int64_t(jobs_.size() * sizeof(Job)));
    sections.take(jobs.starts, int64_t(starts_.size() * sizeof(uint32_t)));
    jobs.count = static_cast<int32_t>(jobs_.size());
    jobs.units = starts_.back();
    if (out) *out = jobs;
    return sections.bytes();
  }

  std::vector<Job> jobs_;
  std::vector<uint32_t> starts_{0};
};

}  // namespace headrace
