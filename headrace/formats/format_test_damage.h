// SPDX-License-Identifier: Apache-2.0
// For tests of formats: a file damaged at any position.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>

#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {

// Truncates the file, flips a bit, or both, at random positions, `rounds` times. Each damaged file
// either opens with at most `max_records` records, and errors of bad records have their number, or
// it is rejected with `code`.
inline void expect_damage_is_told(const std::string& whole, const std::string& format, int rounds,
                                  int64_t max_records, std::string_view code) {
  const TemporaryFolder folder;
  std::mt19937 random(2);
  for (int round = 0; round < rounds; ++round) {
    std::string bytes = whole;
    if (round % 2) bytes.resize(random() % bytes.size());
    if (round % 4 != 1 && !bytes.empty()) bytes[random() % bytes.size()] ^= char(1 << random() % 8);
    const std::string path = folder.write("damaged", bytes);
    try {
      const SourcePtr source = open_source(path, {{"format", format}});
      ASSERT_LE(source->size(), max_records);
      for (int64_t i = 0; i < source->size(); ++i) {
        const RecordData data = read_record(*source, i);
        if (!data.result) {
          EXPECT_EQ(data.result.error().where.record, i);
        }
      }
    } catch (const Exception& exception) {
      EXPECT_EQ(exception.error().code->id, code);
    }
  }
}

}  // namespace headrace
