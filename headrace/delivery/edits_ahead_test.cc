// SPDX-License-Identifier: Apache-2.0
#include "headrace/delivery/edits_ahead.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "headrace/base/error.h"

namespace headrace {
namespace {

std::shared_ptr<DeviceSteps> steps_of(std::vector<Spec> transforms) {
  const Schema schema = {{.name = "image", .kind = FieldKind::kImage, .shape = {3, 20, 24}}};
  const std::shared_ptr<const Plan> plan = make_plan(schema, {std::move(transforms), {}, {}}, {});
  auto steps = std::make_shared<DeviceSteps>(plan, DeviceSteps::Work::kEdit);
  EXPECT_EQ(steps->obstacle(), "");
  return steps;
}

std::vector<Spec> crop_and_flip() {
  return {{"RandomCrop", {{"size", int64_t{16}}, {"padding", int64_t{4}}}},
          {"RandomHorizontalFlip", {}}};
}

bool equal(const std::vector<PictureEdit>& a, const std::vector<PictureEdit>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}

TEST(EditsAhead, EqualASingleThreadsEvenIfOtherEditsWereStarted) {
  const auto alone = steps_of(crop_and_flip());
  for (const int threads : {1, 3}) {
    const auto steps = steps_of(crop_and_flip());
    EditsAhead edits(steps, threads);
    std::mt19937 random(5);
    for (int round = 0; round < 12; ++round) {
      EditedRows rows{.seed = 7, .epoch = random() % 3, .positions = {}};
      int64_t begin = int64_t(random() % 50);
      for (uint32_t ranges = 1 + random() % 3; ranges > 0; --ranges) {
        const int64_t end = begin + 1 + int64_t(random() % 150);
        rows.positions.push_back({begin, end});
        begin = end + int64_t(random() % 20);
      }
      if (random() % 2) edits.begin(rows);
      if (random() % 4 == 0) edits.begin({.seed = 7, .epoch = 9, .positions = {{0, 300}}});
      const EditsAhead::Outcome outcome = edits.take(rows);
      EXPECT_EQ(outcome.rows, rows.count());
      std::vector<PictureEdit> expected;
      for (const BatchRange& range : rows.positions) {
        alone->begin(rows.seed, rows.epoch, range.begin, range.size());
        const std::vector<PictureEdit>& more = alone->outputs()[0].edits;
        expected.insert(expected.end(), more.begin(), more.end());
      }
      EXPECT_TRUE(equal(steps->outputs()[0].edits, expected)) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace headrace
