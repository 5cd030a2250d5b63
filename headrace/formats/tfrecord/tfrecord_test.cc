// SPDX-License-Identifier: Apache-2.0
// Frames and Examples whose bytes are written out here; tests/test_tfrecord.py has the rest.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "headrace/formats/format_test_damage.h"
#include "headrace/formats/tfrecord/tf_example.h"
#include "headrace/formats/tfrecord/tf_fields.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"
#include "headrace/sources/source_test_reads.h"

namespace headrace {
namespace {

using Bytes = std::string;

std::span<const uint8_t> span_of(const Bytes& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}
Bytes field(int number, const Bytes& content) {
  return Bytes{char(number << 3 | 2), char(content.size())} + content;  // shorter than 128 bytes
}
Bytes entry(const Bytes& name, const Bytes& feature) {
  return field(1, field(1, name) + field(2, feature));
}
Bytes example(const Bytes& entries) { return field(1, entries); }

const Bytes kInts = field(3, field(1, Bytes("\x05\xac\x02", 3)));    // 5, 300, packed
const Bytes kLoose = field(3, Bytes("\x08\x05\x08\xac\x02", 5));     // the same, individually
const Bytes kFloats = field(2, field(1, Bytes("\0\0\x80\x3f", 4)));  // 1.0f, packed
const Bytes kText = field(1, field(1, "cat"));

Bytes frame(const Bytes& data) {
  Bytes length(8, '\0');
  length[0] = char(data.size());
  const auto sum = [](const Bytes& bytes) {
    const uint32_t crc = masked_crc32c(span_of(bytes));
    return Bytes(reinterpret_cast<const char*>(&crc), 4);
  };
  return length + sum(length) + data + sum(data);
}

TEST(TfFrames, a_checksum_is_masked_as_in_tensorflow) {
  // CRC-32C of "123456789" is 0xE3069283 (RFC 3720): rotated by 15, plus the constant.
  EXPECT_EQ(masked_crc32c(span_of("123456789")),
            ((0xE3069283u >> 15) | (0xE3069283u << 17)) + 0xa282ead8u);
}

TEST(TfFrames, data_comes_only_from_an_intact_frame) {
  const Bytes good = frame("hello");
  const Result<std::span<const uint8_t>> data = tf_data(span_of(good), true);
  ASSERT_TRUE(data);
  EXPECT_EQ(Bytes(data->begin(), data->end()), "hello");
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] = char(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(tf_data(span_of(bad), true)) << bit;
    EXPECT_EQ(bool(tf_data(span_of(bad), false)), bit / 8 >= 12) << bit;
  }
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(tf_data(span_of(good).first(cut), true)) << cut;
  }
}

TEST(TfExample, returns_features_and_their_values) {
  const Bytes message = example(entry("a", kInts) + entry("b", kLoose) + entry("c", kFloats) +
                                entry("d", kText) + entry("e", ""));
  TfEntries entries(span_of(message));
  TfEntry each;
  Bytes names;
  while (entries.next(each)) {
    names += each.name;
    TfFeature feature;
    TfProblem problem;
    ASSERT_TRUE(feature.parse(each.value, problem)) << each.name;
    if (feature.kind() == TfKind::kInt64) {
      int64_t values[2];
      ASSERT_EQ(feature.count(), 2);
      feature.copy_numbers(reinterpret_cast<uint8_t*>(values));
      EXPECT_EQ(values[0], 5);
      EXPECT_EQ(values[1], 300);
      EXPECT_EQ(feature.first_number(), 5);
    } else if (feature.kind() == TfKind::kFloat) {
      float value = 0;
      ASSERT_EQ(feature.count(), 1);
      feature.copy_numbers(reinterpret_cast<uint8_t*>(&value));
      EXPECT_EQ(value, 1.0f);
    } else if (feature.kind() == TfKind::kBytes) {
      EXPECT_EQ(Bytes(feature.first_bytes().begin(), feature.first_bytes().end()), "cat");
      EXPECT_EQ(feature.total_bytes(), 3u);
    } else {
      EXPECT_EQ(feature.count(), 0);
    }
  }
  EXPECT_EQ(names, "abcde");
  EXPECT_EQ(entries.problem().what, nullptr);
}

TEST(TfExample, the_last_oneof_kind_wins_and_equal_kinds_merge) {
  const Bytes message = kInts + kText + kFloats + kInts + kLoose;
  TfFeature feature;
  TfProblem problem;
  ASSERT_TRUE(feature.parse(span_of(message), problem));
  EXPECT_EQ(feature.kind(), TfKind::kInt64);
  EXPECT_EQ(feature.count(), 4);
}

// Reads everything in a message; sanitizers check memory access.
void use(std::span<const uint8_t> message) {
  TfSample sample;
  if (!sample.add(message)) return;
  std::vector<std::string> left_out;
  for (const TfField& each : guessed_fields(sample, left_out))
    ASSERT_FALSE(each.field.name.empty());
}

TEST(TfExample, truncated_or_changed_anywhere_is_rejected_or_different) {
  const Bytes lists = field(2, entry("s", field(1, kFloats) + field(1, kFloats)));
  const Bytes message = example(entry("a", kInts) + entry("bc", kText)) + lists;
  for (size_t cut = 0; cut <= message.size(); ++cut) {
    const std::vector<uint8_t> part(message.begin(), message.begin() + std::ptrdiff_t(cut));
    use(part);
  }
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bytes(message.begin(), message.end());
    for (unsigned i = 0; i <= random() % 4; ++i) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    use(bytes);
  }
}

TEST(TfRecordFile, truncated_or_changed_anywhere_can_be_opened_and_read) {
  Bytes whole;
  for (int i = 0; i < 9; ++i) whole += frame(example(entry("label", kLoose) + entry("t", kText)));
  expect_damage_is_told(whole, "tfrecord", 600, 9, "HR0475");
}

}  // namespace
}  // namespace headrace
