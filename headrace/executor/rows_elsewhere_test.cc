// SPDX-License-Identifier: Apache-2.0
// Rows that other processes make: each is told which rows of which batch, has a worker of its own,
// and fills memory that it is given. What stands there then is what the engine makes alone.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "headrace/executor/executor_test_ops.h"
#include "headrace/executor/memory/slots.h"
#include "headrace/executor/record_worker.h"

namespace headrace::scopes_test {
namespace {

constexpr int64_t kRecords = 96, kBatch = 32, kEpoch = 3;
constexpr size_t kMiB = size_t{1} << 20;

// All that a process needs to make rows, made of what can be said in words: the source, the steps,
// the seed.
class Elsewhere final : public PythonCalls {
 public:
  explicit Elsewhere(const Pipeline& pipeline)
      : source_(std::make_shared<Numbers>(kRecords)),
        task_{.source = source_,
              .plan = make_plan(source_->schema(), pipeline, PlanOptions()),
              .sampler = shuffled(kRecords),
              .layout = BatchLayout(kRecords, kBatch, 0, 1, LastBatch::kKeep),
              .seed = 11} {}

  void call(int step, std::span<PythonCall* const> calls) override {
    task_.plan->steps()[size_t(step)].function->call(calls);
  }
  // Rows [first, first + count) of a batch, in the memory of its outputs. False where one failed.
  bool fill(int64_t batch, int first, int count, const BatchBuilder::Memory& memory) {
    BatchBuilder builder(*task_.plan, *source_, kEpoch, batch, task_.layout.range(batch), kRecords,
                         memory, {});
    Renderer renderer;
    worker_.prepare(renderer);
    const RowsReport report = worker_.fill({.epoch = kEpoch,
                                            .batch = batch,
                                            .position = task_.layout.range(batch).begin,
                                            .first = first,
                                            .count = count},
                                           builder, renderer);
    return report.settled == count && report.failures.empty();
  }
  size_t outputs() const { return task_.plan->outputs().size(); }
  size_t row_bytes(size_t output) const { return task_.plan->outputs()[output].bytes_per_record; }

 private:
  const SourcePtr source_;
  const RowTask task_;
  const RecordOrder order_{task_};
  const RecordBytes bytes_{*task_.plan};
  MemoryGate gate_{8 * kMiB, kMiB};
  ReadAhead reads_{source_, task_.plan->wanted(), kMiB};
  KeptPartners kept_{kMiB};
  std::atomic<uint64_t> freed_{0};
  const std::atomic<bool> stop_{false};
  const RecordWorker worker_{
      task_, order_, bytes_, {kMiB, kMiB}, {gate_, reads_, kept_, *this, freed_, stop_}};
};

// Pages that several processes write to, by output.
class SharedPages {
 public:
  SharedPages(size_t outputs, size_t bytes) : bytes_(bytes) {
    for (size_t i = 0; i < outputs; ++i) {
      void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
      EXPECT_NE(pages, MAP_FAILED);
      pages_.emplace_back(pages, [bytes](void* mapped) { munmap(mapped, bytes); });
    }
  }
  BatchBuilder::Memory memory() const {
    return [this](size_t output, size_t bytes) {
      EXPECT_LE(bytes, bytes_);
      return pages_[output];
    };
  }
  const uint8_t* at(size_t output) const {
    return static_cast<const uint8_t*>(pages_[output].get());
  }

 private:
  const size_t bytes_;
  std::vector<std::shared_ptr<void>> pages_;
};

TEST(RowsElsewhereTest, TwoProcessesMakeTheRowsOfABatchThatOneMakes) {
  const std::map<std::string, Pipeline> pipelines = {{"nothing", steps({})},
                                                     {"partners", steps({add_partners(3)})},
                                                     {"python", steps({unchanged()})}};
  for (const auto& [name, pipeline] : pipelines) {
    Elsewhere here(pipeline);
    const SharedPages shared(here.outputs(), 4 * kMiB), alone(here.outputs(), 4 * kMiB);
    constexpr int kCut = 13;
    const std::pair<int, int> parts[] = {{0, kCut}, {kCut, int(kBatch) - kCut}};
    std::vector<pid_t> children;
    for (const auto& [first, count] : parts) {
      const pid_t child = fork();
      if (child == 0) _exit(Elsewhere(pipeline).fill(1, first, count, shared.memory()) ? 0 : 1);
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0) << name;
    }
    ASSERT_TRUE(here.fill(1, 0, kBatch, alone.memory()));
    for (size_t output = 0; output < here.outputs(); ++output) {
      const size_t bytes = here.row_bytes(output) * kBatch;
      EXPECT_GT(bytes, 0u);
      EXPECT_EQ(std::memcmp(shared.at(output), alone.at(output), bytes), 0)
          << name << " " << output;
    }
  }
}

}  // namespace
}  // namespace headrace::scopes_test
