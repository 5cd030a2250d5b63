// SPDX-License-Identifier: Apache-2.0
// For tests of batch steps and steps with partners: a loader's batches must not depend on how it is
// run.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/sweep_test_width.h"
#include "headrace/executor/executor_test_ops.h"
#include "headrace/loader/loader_test_numbers.h"

namespace headrace::scopes_test {

inline SourcePtr numbers(int64_t records, std::set<int64_t> bad = {},
                         ReadStyle style = ReadStyle::kMemory) {
  return std::make_shared<Numbers>(records, std::move(bad), style);
}

// The rest of an epoch, batch by batch.
inline std::vector<Rows> epoch_rows(Loader& loader) {
  std::vector<Rows> out;
  while (auto batch = loader.next()) out.push_back(rows_of(*batch));
  return out;
}

// The same for all ranks together.
inline std::vector<Rows> epoch_rows(const SourcePtr& source, const Pipeline& pipeline,
                                    LoaderOptions given, int world, const LoaderState* from) {
  std::vector<Rows> out;
  given.global_batch_size = given.batch_size;
  given.batch_size = 0;
  given.world_size = world;
  for (given.rank = 0; given.rank < world; ++given.rank) {
    Loader loader(source, pipeline, given);
    if (from) loader.load_state(*from);
    const std::vector<Rows> part = epoch_rows(loader);
    out.resize(std::max(out.size(), part.size()));
    for (size_t i = 0; i < part.size(); ++i) {
      out[i].insert(out[i].end(), part[i].begin(), part[i].end());
    }
  }
  return out;
}

inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& exception) {
    return std::string(exception.error().code->id) + " " + exception.error().what;
  }
  return "accepted";
}

// Expects the same result for any number of threads and ranks, any way of reading records, a resume
// in the middle, and batches requested by number.
inline void expect_one_result(const std::function<SourcePtr(ReadStyle)>& source,
                              const Pipeline& pipeline, LoaderOptions given) {
  const SourcePtr memory = source(ReadStyle::kMemory);
  given.threads = 1;
  Loader reference(memory, pipeline, given);
  epoch_rows(reference);
  const LoaderState at_start = reference.state();
  const std::vector<Rows> expected = epoch_rows(reference);
  ASSERT_GT(expected.size(), 3u);
  for (int threads = 1; threads <= 8; threads += kSweepStep) {
    given.threads = threads;
    for (ReadStyle style :
         {ReadStyle::kMemory, ReadStyle::kFiles, ReadStyle::kLater, ReadStyle::kPython}) {
      Loader loader(source(style), pipeline, given);
      loader.load_state(at_start);
      EXPECT_EQ(epoch_rows(loader), expected) << threads << " threads";
    }
  }
  given.threads = 3;
  for (int world : {1, 2, 4}) {
    EXPECT_EQ(epoch_rows(memory, pipeline, given, world, &at_start), expected) << world;
  }
  for (int64_t batch = 0; batch < std::ssize(expected); ++batch) {
    LoaderState in_the_middle = at_start;
    in_the_middle.batch = batch;
    const std::vector<Rows> rest = epoch_rows(memory, pipeline, given, 2, &in_the_middle);
    EXPECT_EQ(rest, std::vector<Rows>(expected.begin() + batch, expected.end())) << batch;
    EXPECT_EQ(rows_of(reference.batch(at_start.epoch, batch)), expected[size_t(batch)]);
  }
}

}  // namespace headrace::scopes_test
