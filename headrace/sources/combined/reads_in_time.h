// SPDX-License-Identifier: Apache-2.0
// Reads records of one of several combined sources, each read with its own deadline.
#pragma once

#include <span>
#include <vector>

#include "headrace/sources/source.h"
#include "headrace/storage/read_deadline.h"

namespace headrace {

// Reads records of one of several sources. Where a reader in Python gets many records by one call,
// and this source is in a far storage, each record has a deadline of its own, which begins when the
// record is waited for: one for all of them would fail the last ones.
inline void read_in_time(const Source& source, std::span<const int64_t> indices,
                         const std::vector<bool>& wanted, std::span<RecordData> out) {
  const double seconds = ReadDeadline::seconds_of_thread();
  const ReadStyle style = source.read_style();
  const bool may_wait = style == ReadStyle::kFiles || style == ReadStyle::kLater;
  if (out.size() <= 1 || seconds <= 0 || !may_wait) return source.read(indices, wanted, out);
  for (size_t i = 0; i < out.size(); ++i) {
    const ReadDeadline deadline(seconds);
    source.read(indices.subspan(i, 1), wanted, out.subspan(i, 1));
  }
}

}  // namespace headrace
