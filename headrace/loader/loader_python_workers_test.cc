// SPDX-License-Identifier: Apache-2.0
// Steps in separate Python processes: their calls run in parallel.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "headrace/executor/executor_test_ops.h"
#include "headrace/loader.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/python_function.h"

namespace headrace {
namespace loader_python_workers_test {

// Returns its input once the given number of calls are in progress.
class Rendezvous final : public PythonFunction {
 public:
  explicit Rendezvous(int size) : size_(size) {}
  std::string name() const override { return "rendezvous"; }
  std::vector<std::string> inputs() const override { return {"number"}; }
  void call(std::span<PythonCall* const> calls) override {
    {
      std::unique_lock lock(mutex_);
      ++inside_;
      largest_ = std::max(largest_, inside_);
      changed_.notify_all();
      changed_.wait_for(lock, std::chrono::seconds(60), [&] { return largest_ >= size_; });
    }
    unchanged_.call(calls);
    std::lock_guard lock(mutex_);
    --inside_;
  }
  int largest() {
    std::lock_guard lock(mutex_);
    return largest_;
  }

 private:
  const int size_;
  scopes_test::Unchanged unchanged_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0, largest_ = 0;
};

SourcePtr numbers(std::vector<int64_t>& values) {
  std::iota(values.begin(), values.end(), 0);
  ArrayColumn column{values.data(), DType::kInt64, static_cast<int64_t>(values.size()), {}, {}};
  return records({Column{.name = "number", .values = column}});
}

std::vector<int64_t> values_of(Loader& loader) {
  std::vector<int64_t> out;
  while (auto batch = loader.next()) {
    const auto* values = static_cast<const int64_t*>((*batch)["number"].view.data);
    out.insert(out.end(), values, values + batch->size);
  }
  return out;
}

TEST(PythonWorkers, MakeOneConcurrentCallEach) {
  std::vector<int64_t> values(96);
  auto rendezvous = std::make_shared<Rendezvous>(3);
  Loader loader(numbers(values), {{Spec{"rendezvous", {}, {}, rendezvous}}, {}, {}},
                {.batch_size = 32, .threads = 1, .python_workers = 3});
  EXPECT_EQ(values_of(loader), values);
  EXPECT_EQ(rendezvous->largest(), 3);
}

TEST(PythonWorkers, CallsAreSequentialWithoutWorkers) {
  std::vector<int64_t> values(96);
  auto alone = std::make_shared<Rendezvous>(1);
  Loader loader(numbers(values), {{Spec{"rendezvous", {}, {}, alone}}, {}, {}},
                {.batch_size = 32, .threads = 4});
  EXPECT_EQ(values_of(loader), values);
  EXPECT_EQ(alone->largest(), 1);
}

}  // namespace loader_python_workers_test
}  // namespace headrace
