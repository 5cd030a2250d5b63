// SPDX-License-Identifier: Apache-2.0
// The outputs of a plan that are left to the device to which batches are copied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/fields/record.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

// Where the rows of an output are finished. kMostlyDevice: some may have to be rendered as they are
// delivered, so memory is kept for them.
enum class FinishPlace : uint8_t { kHost, kDevice, kMostlyDevice };

struct DeviceWork {
  std::vector<FinishPlace> finished = {};  // by output: the last of the work on pictures
  std::vector<bool> decoded = {};  // by output: all of it, for the records where that can be
  size_t coded_row = 0;            // then: what a slot has for one (coded_share.h)

  FinishPlace place(size_t output) const {
    return output < finished.size() ? finished[output] : FinishPlace::kHost;
  }
  bool finishes(size_t output) const { return place(output) != FinishPlace::kHost; }
  bool decodes(size_t output) const { return output < decoded.size() && decoded[output]; }
  bool decodes_any() const { return std::ranges::find(decoded, true) != decoded.end(); }
};

// Bytes of a record in the slot; `number`: the output's.
size_t slot_row_bytes(const Output& output, size_t number, const DeviceWork& left);

// Marks a record's images that a device can decode as they are stored, so that passes over their
// pixels are left to it, too (image/pending_picture.h).
void mark_for_device(Record& record, const DeviceDecoding& log);

}  // namespace headrace
