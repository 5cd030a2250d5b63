// SPDX-License-Identifier: Apache-2.0
// Compared with the definition, written out: every row is computed from the original rows.
// tests/test_batch_mixing.py compares the host with torchvision, tests/test_device_finish.py both.
#include "headrace/kernels/batch/mix_rows.h"

#include <cmath>

#include "headrace/kernels/batch/batch_test_devices.h"

namespace headrace {
namespace {

struct Pictures {
  int rows, channels, height, width;
  bool planar;

  int row_samples() const { return channels * height * width; }
  // The position in the picture of a sample of a row.
  struct Spot {
    int y, x;
  };
  Spot spot(int sample) const {
    if (planar) return {sample / width % height, sample % width};
    return {sample / (width * channels), sample / channels % width};
  }
};

class MixRowsOn : public OnTestDevice {
 protected:
  // mixed(mixed-in sample, own sample, mix): the expected result.
  template <class Stored, class Mixed>
  void expect_mixed(DType dtype, const Pictures& shape, const std::vector<RowGroup>& groups,
                    const std::vector<RowMix>& mixes, const std::vector<Stored>& before,
                    Mixed&& mixed) {
    Stored* const batch = put(before);
    run_here(MixRows{.batch = batch,
                     .dtype = dtype,
                     .height = shape.height,
                     .lines = shape.planar ? shape.channels * shape.height : shape.height,
                     .samples = shape.planar ? shape.width : shape.width * shape.channels,
                     .samples_of_pixel = shape.planar ? 1 : shape.channels,
                     .groups = put(groups),
                     .mixes = put(mixes),
                     .group_count = int64_t(groups.size())});
    std::vector<Stored> expected = before;
    const int row_samples = shape.row_samples();
    for (const RowGroup& group : groups) {
      for (int i = 0; i < group.count; ++i) {
        const int row = group.first + i;
        const int partner = group.first + (i + group.count - 1) % group.count;
        const RowMix& mix = mixes[size_t(row)];
        for (int at = 0; at < row_samples; ++at) {
          const auto [y, x] = shape.spot(at);
          if (y < mix.top || y >= mix.bottom || x < mix.left || x >= mix.right) continue;
          const Stored theirs = before[size_t(partner * row_samples + at)];
          Stored& own = expected[size_t(row * row_samples + at)];
          own = mix.copies ? theirs : mixed(theirs, own, mix);
        }
      }
    }
    ASSERT_EQ(get(batch, before.size()), expected);
  }

  static std::vector<RowMix> drawn_mixes(TestDraws& draws, const Pictures& shape) {
    std::vector<RowMix> out;
    for (int row = 0; row < shape.rows; ++row) {
      const float own = float(draws.between(0, 100)) / 100;
      RowMix mix{.own = own, .rest = float(1.0 - double{own})};
      mix.top = draws.between(0, shape.height);
      mix.left = draws.between(0, shape.width);
      mix.bottom = draws.between(mix.top, shape.height);
      mix.right = draws.between(mix.left, shape.width);
      if (draws.below(2))
        mix = {.own = own, .rest = mix.rest, .bottom = shape.height, .right = shape.width};
      mix.copies = draws.below(2);
      out.push_back(mix);
    }
    return out;
  }
  // Groups of 1 to 5 rows, with rows in between that belong to no group.
  static std::vector<RowGroup> drawn_groups(TestDraws& draws, int rows) {
    std::vector<RowGroup> out;
    for (int row = draws.below(3); row < rows;) {
      const int count = std::min(draws.between(1, 5), rows - row);
      out.push_back({row, count});
      row += count + draws.below(2);
    }
    return out;
  }
};

TEST_P(MixRowsOn, FloatsAreBlendedWithOrReplacedByThePreviousRow) {
  TestDraws draws(1);
  for (int round = 0; round < 40; ++round) {
    const Pictures shape{draws.between(1, 12), draws.between(1, 4), draws.between(1, 9),
                         draws.between(1, 70), round % 2 == 0};
    const auto groups = drawn_groups(draws, shape.rows);
    const auto mixes = drawn_mixes(draws, shape);
    std::vector<float> before;
    for (int i = 0; i < shape.rows * shape.row_samples(); ++i) {
      before.push_back(float(draws.between(-1000, 1000)) / 7);
    }
    expect_mixed(DType::kFloat32, shape, groups, mixes, before,
                 [](float theirs, float own, const RowMix& mix) {
                   volatile const float a = theirs * mix.rest, b = own * mix.own;
                   return a + b;
                 });
  }
}

TEST_P(MixRowsOn, BytesAreRoundedToTheNearest) {
  TestDraws draws(2);
  for (int round = 0; round < 20; ++round) {
    const Pictures shape{draws.between(1, 9), 3, draws.between(1, 9), draws.between(1, 40),
                         round % 2 == 0};
    const auto before = draws.values<uint8_t>(size_t(shape.rows * shape.row_samples()));
    expect_mixed(DType::kUInt8, shape, drawn_groups(draws, shape.rows), drawn_mixes(draws, shape),
                 before, [](uint8_t theirs, uint8_t own, const RowMix& mix) {
                   volatile const float a = float(theirs) * mix.rest, b = float(own) * mix.own;
                   return static_cast<uint8_t>(std::floor(a + b + 0.5f));
                 });
  }
}

// Numbers whose products float16 and bfloat16 hold exactly, so that the expected sum is exact.
TEST_P(MixRowsOn, SixteenBitsAreMixedInTheirOwnDtype) {
  TestDraws draws(3);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Pictures shape{6, 3, 5, 33, true};
    const auto bits = [&](float value) {
      return dtype == DType::kFloat16 ? float16_from_float32(value) : bfloat16_from_float32(value);
    };
    const auto value = [&](uint16_t of) {
      return dtype == DType::kFloat16 ? float32_from_float16(of) : float32_from_bfloat16(of);
    };
    std::vector<uint16_t> before;
    for (int i = 0; i < shape.rows * shape.row_samples(); ++i) {
      before.push_back(bits(float(draws.between(-60, 60))));
    }
    std::vector<RowMix> mixes(6, {.own = 0.25f, .rest = 0.75f, .bottom = 5, .right = 33});
    expect_mixed(dtype, shape, {{0, 4}, {4, 2}}, mixes, before,
                 [&](uint16_t theirs, uint16_t own, const RowMix&) {
                   return bits(0.75f * value(theirs) + 0.25f * value(own));
                 });
  }
}

TEST_P(MixRowsOn, NoGroupsMeanNoWork) {
  EXPECT_EQ((MixRows{.height = 4, .lines = 12, .samples = 9}.items()), 0);
  run_here(MixRows{.height = 4, .lines = 12, .samples = 9});
}

INSTANTIATE_TEST_SUITE_P(Devices, MixRowsOn, testing::ValuesIn(test_devices()), test_device_name);

}  // namespace
}  // namespace headrace
