// SPDX-License-Identifier: Apache-2.0
// The outputs of a plan that are deferred to the device that batches are copied to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/fields/record.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sources/source.h"

namespace headrace {

// Where the rows of an output are finished. kMostlyDevice: some may have to be rendered at
// delivery, so memory is reserved for them.
enum class FinishPlace : uint8_t { kHost, kDevice, kMostlyDevice };

struct DeviceWork {
  std::vector<FinishPlace> finished = {};  // by output: where the final work on pictures is done
  std::vector<bool> decoded = {};  // by output: whether pictures are decoded there too, if possible
  size_t coded_row = 0;  // for decoded outputs: slot bytes per picture (coded_row_bytes())

  FinishPlace place(size_t output) const {
    return output < finished.size() ? finished[output] : FinishPlace::kHost;
  }
  bool finishes(size_t output) const { return place(output) != FinishPlace::kHost; }
  bool decodes(size_t output) const { return output < decoded.size() && decoded[output]; }
  bool decodes_any() const { return std::ranges::find(decoded, true) != decoded.end(); }
};

// How many encoded bytes per record a slot has room for, if a device decodes pictures: the average
// size of a few records' images that the plan needs, plus some reserve. For slow sources and for
// small pictures: CodedRows::kUsualRow.
size_t coded_row_bytes(const Source& source, const Plan& plan);

// Slot bytes per record; `number`: the number of the output.
size_t slot_row_bytes(const Output& output, size_t number, const DeviceWork& left);

// Marks a record's images that the device can decode as stored, so that image-wide passes are also
// deferred to it (image/pending_picture.h).
void mark_for_device(Record& record, const DeviceDecoding& log);

}  // namespace headrace
