// SPDX-License-Identifier: Apache-2.0
// For tests of coded rows: a device's results, laid out as delivery/device_finisher.h
// does.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/finish/coded_rows.h"

namespace headrace::coded_rows_test {

using Bytes = std::vector<uint8_t>;

struct Outcome {
  std::vector<Bytes> rows;  // (C, H, W) each
  Bytes verdict;
};

// Slot data of all rows, including those of a part. The memory is exactly large enough, so that
// AddressSanitizer detects reads past it.
inline Outcome on_device(const CodedRows& all, const uint8_t* slot, int64_t rows, size_t row_bytes,
                         Device& device) {
  const std::unique_ptr<CodedRows> whole = all.part(0, rows);
  CodedRows& coded = *whole;
  coded.put_together();
  const size_t parameters_at = UnfinishedRows::aligned(coded.slot_bytes());
  const size_t scratch_at = parameters_at + UnfinishedRows::aligned(coded.parameter_bytes());
  const std::shared_ptr<void> memory = device.allocate(scratch_at + coded.scratch_bytes());
  auto* const there = static_cast<uint8_t*>(memory.get());
  Bytes parameters(coded.parameter_bytes());
  coded.write_parameters(parameters.data(), scratch_at);
  Outcome out{.rows = std::vector<Bytes>(size_t(rows), Bytes(row_bytes)),
              .verdict = Bytes(coded.verdict_bytes())};
  std::vector<int64_t> offsets(static_cast<size_t>(rows));
  const StreamPtr stream = device.make_stream();
  size_t filled = 0;
  for (const UnfinishedRows::SlotPiece& piece : coded.slot_pieces()) {
    stream->copy(there + filled, slot + piece.begin, piece.bytes);
    filled += piece.bytes;
  }
  stream->copy(there + parameters_at, parameters.data(), parameters.size());
  const int64_t* const offsets_there = coded.queue(*stream, {.slot = there,
                                                             .parameters = there + parameters_at,
                                                             .scratch = there + scratch_at,
                                                             .verdict = out.verdict.data()});
  stream->copy(offsets.data(), offsets_there, offsets.size() * sizeof(int64_t));
  stream->synchronize();
  for (size_t row = 0; row < out.rows.size(); ++row) {
    stream->copy(out.rows[row].data(), there + offsets[row], row_bytes);
  }
  stream->synchronize();
  return out;
}

}  // namespace headrace::coded_rows_test
