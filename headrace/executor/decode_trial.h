// SPDX-License-Identifier: Apache-2.0
// Makes a few records of a task in advance, to find out which of their pictures a device would
// decode.
#pragma once

#include "headrace/executor/row_task.h"
#include "headrace/finish/device_decoding.h"

namespace headrace {

// Tries 64 evenly spaced records, or as many as fit into half a second, at least eight. Bad records
// are skipped. Python steps and steps with partners are not run; pictures that pass through one
// count as "rendered earlier". REQUIRES: task.left specifies what the device decodes.
DeviceDecoding::Counts trial_decode_counts(const RowTask& task);

}  // namespace headrace
