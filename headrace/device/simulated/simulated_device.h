// SPDX-License-Identifier: Apache-2.0
// A device for finding bugs: it executes queued work as late as allowed, in an order drawn from a
// seed, overwrites freed memory, and has its own clock.
//
// Nothing runs by itself. Each call draws whether some queued work is done, and in which stream;
// the rest is done when a caller waits for it. So a copy whose source is overwritten too early, or
// a reader that does not wait for its copy, sees wrong bytes, in every run with that seed. On the
// clock, a piece of work begins when its stream is free and the events that it waits for are done,
// and ends after its cost; the host takes no time. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/mutex.h"
#include "headrace/device/device.h"

namespace headrace {

struct SimulatedCosts {
  double bytes_per_second = 0;  // of copies; 0: they take no time
  double run_seconds = 0;       // of work that is queued without a cost
};

// One piece of work on the clock, in the order in which it was done.
struct SimulatedWork {
  enum class Kind { kCopy, kRun } kind;
  int stream = 0;
  double begin = 0, end = 0;
};

class SimulatedDevice final : public Device {
 public:
  // memory_limit: bytes that allocate() can return in total; 0: no limit. `pins`: whether pin()
  // works.
  explicit SimulatedDevice(uint64_t seed, SimulatedCosts costs = {}, size_t memory_limit = 0,
                           bool pins = true);
  ~SimulatedDevice() override;

  std::string_view backend() const override { return "simulated"; }
  int index() const override { return 0; }
  std::string name() const override { return "simulated"; }
  std::shared_ptr<void> allocate(size_t bytes) override;
  bool pin(void* pages, size_t bytes) override;
  void unpin(void* pages) noexcept override;
  size_t free_bytes() const override;
  size_t total_bytes() const override;
  StreamPtr make_stream() override;
  // Streams are numbered from 1; 0 is a stream like the others.
  StreamPtr foreign_stream(uintptr_t handle) override;

  // Makes the n-th allocation from now on fail; later ones succeed.
  void refuse_allocation(int64_t n);
  // Makes the n-th call from now on and all later ones fail with HR0883, like a lost device: queued
  // work is not executed any more.
  void fail_at(int64_t n);
  int64_t calls() const;  // counted calls

  std::vector<SimulatedWork> timeline() const;
  size_t allocated_bytes() const;
  size_t peak_bytes() const;
  int pinned_ranges() const;

 private:
  struct State;
  // shared: with streams, events and memory, which may outlive the device.
  std::shared_ptr<State> state_;
};

}  // namespace headrace
