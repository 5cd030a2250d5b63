// SPDX-License-Identifier: Apache-2.0
#include "headrace/device/simulated/simulated_device.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "headrace/base/pages.h"
#include "headrace/device/device.h"

namespace headrace {
namespace {

// Freed memory is overwritten, so that late readers are detected.
constexpr int kSpoilt = 0xDD;

struct Marked {  // state of an event; guarded by the device's mutex
  bool done = false;
  double time = 0;
};

struct Queued {
  enum class Kind { kCopy, kRun, kRecord, kWait } kind;
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  std::function<void()> work = {};
  double cost = 0;
  std::shared_ptr<Marked> mark = {};  // shared: with the event
};

struct Lane {
  std::deque<Queued> queue;
  double time = 0;
};

}  // namespace

// Shared by the device, its streams, events and memory. Work runs under the mutex: it consists of
// functions of the tests, which do not call the device.
struct SimulatedDevice::State {
  mutable Mutex mutex;
  std::mt19937_64 random GUARDED_BY(mutex);
  std::map<int, Lane> lanes GUARDED_BY(mutex);
  int next_stream GUARDED_BY(mutex) = 1;
  std::vector<SimulatedWork> timeline GUARDED_BY(mutex);
  size_t allocated GUARDED_BY(mutex) = 0, peak GUARDED_BY(mutex) = 0;
  std::map<void*, size_t> pinned GUARDED_BY(mutex);
  size_t blocks GUARDED_BY(mutex) = 0;                             // allocated
  std::vector<std::pair<void*, size_t>> spoilt GUARDED_BY(mutex);  // mapped while work is queued
  int64_t calls GUARDED_BY(mutex) = 0, fails_at GUARDED_BY(mutex) = INT64_MAX;
  int64_t allocations GUARDED_BY(mutex) = 0, refused GUARDED_BY(mutex) = INT64_MAX;
  SimulatedCosts costs;
  size_t memory_limit = 0;
  bool pins = true;

  explicit State(uint64_t seed) : random(seed) {}
  ~State() { bury(); }

  void bury() REQUIRES_LOCK(mutex) {
    for (const auto& [pages, bytes] : spoilt) unmap_pages(pages, bytes);
    spoilt.clear();
  }

  // A late reader sees overwritten bytes instead of causing a fault.
  void take_back(void* pages, size_t bytes) REQUIRES_LOCK(mutex) {
    std::memset(pages, kSpoilt, bytes);
    spoilt.emplace_back(pages, bytes);
    --blocks;
    allocated -= bytes;
    const auto idle = [](const auto& lane) { return lane.second.queue.empty(); };
    if (std::all_of(lanes.begin(), lanes.end(), idle)) bury();
  }

  // Checked on every call. A failed device drops all queued work.
  void count_call() REQUIRES_LOCK(mutex) {
    if (++calls < fails_at) return;
    for (auto& [number, lane] : lanes) lane.queue.clear();
    bury();
    throw_device_failed("simulated: it is lost");
  }

  static bool can_run(const Lane& lane) {
    if (lane.queue.empty()) return false;
    const Queued& head = lane.queue.front();
    return head.kind != Queued::Kind::kWait || head.mark->done;
  }

  void work_off(int number, Lane& lane) REQUIRES_LOCK(mutex) {
    Queued head = std::move(lane.queue.front());
    lane.queue.pop_front();
    const double begin = lane.time;
    switch (head.kind) {
      case Queued::Kind::kCopy:
        if (head.bytes > 0) std::memcpy(head.to, head.from, head.bytes);
        if (costs.bytes_per_second > 0) lane.time += double(head.bytes) / costs.bytes_per_second;
        timeline.push_back({SimulatedWork::Kind::kCopy, number, begin, lane.time});
        break;
      case Queued::Kind::kRun:
        head.work();
        lane.time += head.cost > 0 ? head.cost : costs.run_seconds;
        timeline.push_back({SimulatedWork::Kind::kRun, number, begin, lane.time});
        break;
      case Queued::Kind::kRecord:
        head.mark->done = true;
        head.mark->time = lane.time;
        break;
      case Queued::Kind::kWait:
        lane.time = std::max(lane.time, head.mark->time);
        break;
    }
  }

  // Runs the next operation of one of the streams that do not wait for another; false if there is
  // none. Allocates nothing: a real device does not either.
  bool work_once() REQUIRES_LOCK(mutex) {
    const auto able = [](const auto& lane) { return can_run(lane.second); };
    const auto count = std::ranges::count_if(lanes, able);
    if (count == 0) return false;
    auto skipped = static_cast<int64_t>(random() % static_cast<uint64_t>(count));
    for (auto& [number, lane] : lanes) {
      if (!can_run(lane) || skipped-- > 0) continue;
      work_off(number, lane);
      return true;
    }
    return false;
  }

  // A side effect of any call, which mostly does nothing.
  void drift() REQUIRES_LOCK(mutex) {
    for (uint64_t n = random() % 8 == 0 ? random() % 4 : 0; n > 0 && work_once(); --n) {
    }
  }

  void queue(int stream, Queued work) REQUIRES_LOCK(mutex) {
    count_call();
    size_t queued = 1;
    for (const auto& [number, lane] : lanes) queued += lane.queue.size();
    const size_t entries = timeline.size() + queued;  // each operation adds at most one
    if (timeline.capacity() < entries) timeline.reserve(2 * entries);
    lanes[stream].queue.push_back(std::move(work));
    drift();
  }
};

namespace {

template <class State>
class SimulatedEvent final : public Event {
 public:
  SimulatedEvent(std::shared_ptr<State> device, std::shared_ptr<Marked> mark)
      : device_(std::move(device)), mark_(std::move(mark)) {}
  bool done() const override {
    MutexLock lock(device_->mutex);
    device_->count_call();
    device_->drift();
    return mark_->done;
  }
  void wait_on_host() const override {
    MutexLock lock(device_->mutex);
    device_->count_call();
    while (!mark_->done && device_->work_once()) {
    }
  }
  const std::shared_ptr<Marked>& mark() const { return mark_; }

 private:
  std::shared_ptr<State> device_;  // shared: see SimulatedDevice::State
  std::shared_ptr<Marked> mark_;   // shared: with the queue
};

template <class State>
class SimulatedStream final : public Stream {
 public:
  SimulatedStream(std::shared_ptr<State> device, int number)
      : device_(std::move(device)), number_(number) {}
  void copy(void* to, const void* from, size_t bytes) override {
    MutexLock lock(device_->mutex);
    device_->queue(number_, {.kind = Queued::Kind::kCopy, .to = to, .from = from, .bytes = bytes});
  }
  void run(std::function<void()> work, double cost) override {
    MutexLock lock(device_->mutex);
    device_->queue(number_, {.kind = Queued::Kind::kRun, .work = std::move(work), .cost = cost});
  }
  EventPtr record() override {
    auto mark = std::make_shared<Marked>();
    MutexLock lock(device_->mutex);
    device_->queue(number_, {.kind = Queued::Kind::kRecord, .mark = mark});
    return std::make_shared<SimulatedEvent<State>>(device_, mark);
  }
  void wait(const EventPtr& event) override {
    const auto* known = dynamic_cast<const SimulatedEvent<State>*>(event.get());
    if (!known) return event->wait_on_host();
    MutexLock lock(device_->mutex);
    device_->queue(number_, {.kind = Queued::Kind::kWait, .mark = known->mark()});
  }
  void synchronize() override { record()->wait_on_host(); }
  uintptr_t handle() const override { return static_cast<uintptr_t>(number_); }

 private:
  std::shared_ptr<State> device_;  // shared: see SimulatedDevice::State
  int number_;
};

}  // namespace

SimulatedDevice::SimulatedDevice(uint64_t seed, SimulatedCosts costs, size_t memory_limit,
                                 bool pins)
    : state_(std::make_shared<State>(seed)) {
  state_->costs = costs;
  state_->memory_limit = memory_limit;
  state_->pins = pins;
}

SimulatedDevice::~SimulatedDevice() = default;

std::shared_ptr<void> SimulatedDevice::allocate(size_t bytes) {
  void* pages = nullptr;
  {
    MutexLock lock(state_->mutex);
    const size_t limit = state_->memory_limit;
    state_->count_call();
    if (++state_->allocations == state_->refused) {
      throw_out_of_memory(name(), bytes, 0, total_bytes());
    }
    if (limit > 0 && bytes > limit - std::min(limit, state_->allocated)) {
      throw_out_of_memory(name(), bytes, limit - state_->allocated, limit);
    }
    state_->spoilt.reserve(state_->spoilt.size() + state_->blocks + 1);  // freeing needs no memory
    pages = map_pages(bytes);
    ++state_->blocks;
    state_->allocated += bytes;
    state_->peak = std::max(state_->peak, state_->allocated);
  }
  return {pages, [bytes, state = state_](void* freed) {
            MutexLock lock(state->mutex);
            state->take_back(freed, bytes);
          }};
}

bool SimulatedDevice::pin(void* pages, size_t bytes) {
  MutexLock lock(state_->mutex);
  return state_->pins && state_->pinned.emplace(pages, bytes).second;
}

void SimulatedDevice::unpin(void* pages) noexcept {
  MutexLock lock(state_->mutex);
  state_->pinned.erase(pages);
}

size_t SimulatedDevice::total_bytes() const {
  return state_->memory_limit > 0 ? state_->memory_limit : size_t{1} << 40;
}

size_t SimulatedDevice::free_bytes() const { return total_bytes() - allocated_bytes(); }

StreamPtr SimulatedDevice::make_stream() {
  int number;
  {
    MutexLock lock(state_->mutex);
    number = state_->next_stream++;
  }
  return foreign_stream(static_cast<uintptr_t>(number));
}

StreamPtr SimulatedDevice::foreign_stream(uintptr_t handle) {
  return std::make_shared<SimulatedStream<State>>(state_, static_cast<int>(handle));
}

void SimulatedDevice::refuse_allocation(int64_t n) {
  MutexLock lock(state_->mutex);
  state_->refused = state_->allocations + n;
}

void SimulatedDevice::fail_at(int64_t n) {
  MutexLock lock(state_->mutex);
  state_->fails_at = state_->calls + n;
}

int64_t SimulatedDevice::calls() const {
  MutexLock lock(state_->mutex);
  return state_->calls;
}

std::vector<SimulatedWork> SimulatedDevice::timeline() const {
  MutexLock lock(state_->mutex);
  return state_->timeline;
}

size_t SimulatedDevice::allocated_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->allocated;
}

size_t SimulatedDevice::peak_bytes() const {
  MutexLock lock(state_->mutex);
  return state_->peak;
}

int SimulatedDevice::pinned_ranges() const {
  MutexLock lock(state_->mutex);
  return static_cast<int>(state_->pinned.size());
}

}  // namespace headrace
