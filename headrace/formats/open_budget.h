// SPDX-License-Identifier: Apache-2.0
// Limits the work of opening a source: bytes allocated or read, and steps, in proportion to the
// size of its files.
//
// A few bytes can refer to the same structure a million times, expand a thousandfold, or declare
// rows that were never written. So code that follows a file's declarations first deducts their cost
// from this budget, and a hostile file costs at most a small multiple of its size. The budget also
// calls `progress`, which may cancel. For one thread; `progress` must outlive it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/sources/source.h"

namespace headrace {

class OpenBudget {
 public:
  // Real files stay far below these limits: the most expensive are compressed labels, which are
  // decompressed and numbered.
  static constexpr uint64_t kBytes = uint64_t{256} << 20, kBytesPerByte = 64;
  static constexpr uint64_t kSteps = uint64_t{1} << 24, kStepsPerByte = 4;

  // `path`: of the source, for the message.
  OpenBudget(std::string path, uint64_t file_bytes, const Progress* progress = nullptr);

  // Throws Exception HR0499, with `what`, if the rest of the budget does not suffice; and whatever
  // progress throws.
  void spend(uint64_t bytes, std::string_view what);
  void step(uint64_t count, std::string_view what);
  // Whether this many bytes are left; if not, the caller skips the work without an error.
  bool affords(uint64_t bytes) const { return bytes <= bytes_left_; }

 private:
  [[noreturn]] void exceeded(std::string_view what, uint64_t of, std::string_view unit) const;
  void poll(uint64_t cost);

  std::string path_;
  uint64_t file_bytes_, bytes_left_, steps_left_;
  const Progress* progress_;
  uint64_t since_ = 0;  // cost since the last progress call
  int64_t polls_ = 0;
};

}  // namespace headrace
