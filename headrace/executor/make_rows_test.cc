// SPDX-License-Identifier: Apache-2.0
// Rows that other processes make: each process gets row numbers and memory to fill, and has its own
// worker. The rows are the same as if the engine makes them alone.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "headrace/executor/executor_test_ops.h"
#include "headrace/executor/executor_test_worker.h"

namespace headrace::scopes_test {
namespace make_rows_test {

constexpr int64_t kRecords = 96, kBatch = 32, kEpoch = 3;
constexpr size_t kMiB = LentWorker::kMiB;

// All that a process needs to make rows, made of what can be said in words: the source, the steps,
// the seed.
class Elsewhere {
 public:
  explicit Elsewhere(const Pipeline& pipeline) : here_(task_for(pipeline)) {}

  // Rows [first, first + count) of a batch, in the memory of its outputs. False where one failed.
  bool fill(int64_t batch, int first, int count, const BatchBuilder::Memory& memory) {
    const RowTask& task = here_.task;
    const BatchRange range = task.layout.range(batch);
    BatchBuilder builder(*task.plan, *task.source, kEpoch, batch, range, memory, {});
    Renderer renderer;
    here_.worker.prepare(renderer);
    const RowsReport report = here_.worker.fill(
        {.epoch = kEpoch, .batch = batch, .position = range.begin, .first = first, .count = count},
        builder, renderer);
    return report.settled == count && report.failures.empty();
  }
  size_t outputs() const { return here_.task.plan->outputs().size(); }
  size_t row_bytes(size_t output) const {
    return here_.task.plan->outputs()[output].bytes_per_record;
  }

 private:
  static RowTask task_for(const Pipeline& pipeline) {
    const SourcePtr source = std::make_shared<Numbers>(kRecords);
    return {.source = source,
            .plan = make_plan(source->schema(), pipeline, PlanOptions()),
            .sampler = shuffled(kRecords),
            .layout = BatchLayout(kRecords, kBatch, 0, 1, LastBatch::kKeep),
            .seed = 11};
  }
  LentWorker here_;
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

TEST(MakeRowsTest, TwoProcessesMakeTheRowsOfABatchThatOneMakes) {
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

}  // namespace make_rows_test
}  // namespace headrace::scopes_test
