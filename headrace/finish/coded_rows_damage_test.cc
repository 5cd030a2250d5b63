// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <new>

#include "headrace/base/allocations_test_hook.h"
#include "headrace/device/device.h"
#include "headrace/device/simulated/simulated_device.h"
#include "headrace/finish/coded_rows.h"
#include "headrace/finish/coded_rows_test_files.h"

namespace {

// Counts down allocations in the test's thread; the one that reaches 0 fails.
thread_local int64_t refused_allocation = 0;

}  // namespace

void headrace::before_allocation() {
  if (refused_allocation > 0 && --refused_allocation == 0) throw std::bad_alloc();
}

namespace headrace::coded_rows_test {
namespace {

// For damaged bytes and indexes, the device either reports the damage or gives the same pixels as
// the CPU.
TEST(CodedRowsDamage, DamageIsFlaggedOrDecodedAsOnTheCpu) {
  jpeg_test::Draw draw(11);
  Renderer renderer;
  int flagged = 0, shown = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<File> sources = files();
    Filling filling(8);
    std::vector<Recipe> recipes;
    std::vector<bool> taken;
    for (int64_t row = 0; row < 8; ++row) {
      File& file = sources[size_t(row)];
      for (int n = 1 + draw.below(3); n > 0; --n) {
        if (draw.below(2) && file.index.size() > 9) {
          file.index[8 + size_t(draw.below(int(file.index.size()) - 8))] ^=
              uint8_t(1 << draw.below(8));
        } else {
          file.bytes.data()[draw.below(int(file.plain.size()))] = uint8_t(draw.below(256));
        }
      }
      recipes.push_back(file.recipe(drawn_window(file, draw)));
      taken.push_back(filling.take(row, recipes.back()));
      if (!taken.back()) filling.put_pixels(row);
    }
    filling.coded.settle(8);
    const Outcome made = on_device(filling.coded, filling.slot.data(), 8, kPixels, *host_device());
    const bool accepted = made.verdict.empty() || filling.coded.accepts(made.verdict.data());
    bool all_trusted = true;
    for (int64_t row = 0; row < 8; ++row) {
      if (!taken[size_t(row)]) continue;
      if (!filling.log->trusts(100 + row)) {
        all_trusted = false;
        ++flagged;
        EXPECT_FALSE(filling.take(row, recipes[size_t(row)]));  // not tried again
        continue;
      }
      ++shown;
      Bytes wanted(kPixels);
      RenderTask task;
      task.recipe = &recipes[size_t(row)];
      task.target.data = wanted.data();
      renderer.render({&task, 1});
      ASSERT_TRUE(task.result) << task.result.error().message();
      EXPECT_EQ(made.rows[size_t(row)], wanted);
    }
    EXPECT_EQ(accepted, all_trusted);
  }
  EXPECT_GT(flagged, 100);
  EXPECT_GT(shown, 100);
}

TEST(CodedRowsDamage, RowsCanBeRetriedAfterAFailedAllocation) {
  const std::vector<File> sources = files();
  jpeg_test::Draw draw(5);
  std::vector<Window> windows;
  for (const File& file : sources) windows.push_back(drawn_window(file, draw));
  int64_t refused = 0;
  for (int64_t k = 1; k <= 200; ++k) {
    Filling filling(8);
    std::vector<Recipe> recipes;
    for (size_t i = 0; i < 8; ++i) recipes.push_back(sources[i].recipe(windows[i]));
    const auto attempt = [&](auto&& use) {
      try {
        use();
      } catch (const std::bad_alloc&) {
        ++refused;
        refused_allocation = 0;
        use();
      }
    };
    Outcome made;
    refused_allocation = k;
    for (int64_t row = 0; row < 8; ++row) {
      attempt([&] { EXPECT_TRUE(filling.take(row, recipes[size_t(row)])); });
    }
    attempt([&] { filling.coded.settle(8); });
    std::unique_ptr<CodedRows> part;
    attempt([&] { part = filling.coded.part(2, 7); });
    attempt([&] { made = on_device(*part, filling.slot.data(), 5, kPixels, *host_device()); });
    refused_allocation = 0;
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(made.rows[i], sources[i + 2].expected(windows[i + 2])) << k;
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(CodedRowsDamage, RowsOfALostDeviceCanBeDecodedByAnother) {
  Mixture mixture;
  const CodedRows& coded = mixture.filling.coded;
  mixture.filling.coded.settle(24);
  int64_t lost = 0;
  for (int64_t k = 1; k <= 200; ++k) {
    const auto device = std::make_shared<SimulatedDevice>(uint64_t(k));
    device->fail_at(k);
    const uint8_t* const slot = mixture.filling.slot.data();
    try {
      const Outcome made = on_device(coded, slot, 24, kPixels, *device);
      EXPECT_EQ(made.rows, mixture.expected);
    } catch (const Exception& exception) {
      ++lost;
      EXPECT_EQ(exception.error().code->id, "HR0883");
      if (k % 8) continue;
      const Outcome made = on_device(coded, slot, 24, kPixels, *host_device());
      EXPECT_EQ(made.rows, mixture.expected);
    }
  }
  EXPECT_GT(lost, 20);
}

}  // namespace
}  // namespace headrace::coded_rows_test
