// SPDX-License-Identifier: Apache-2.0
// Where the last of a pipeline's work on pictures is done: tables of bytes, map of values, flip,
// erased rectangle, layout and dtype, rows mixed. By the threads that decode, or on the device that
// batches are copied to, which then takes bytes in place of floats. The batches are the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/finish/device_work.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

// kAuto: on the device where that makes fewer bytes cross.
enum class FinishUse : uint8_t { kHost, kAuto, kDevice };

struct FinishChoice {
  std::vector<FinishPlace> places = {};  // by output; empty: none
  std::string text = {};             // "device: image crosses as 147.0 KiB a record, not 588.0 KiB"
  bool asked = false;                // T.ToDevice says so, and is not to be left to the host
  std::vector<bool> decodable = {};  // by output: of these, one picture a record, no clip

  bool any() const { return !places.empty(); }
};

// device: where batches go, by its name; empty: nowhere. for_decoding: also what is delivered as
// bytes, because pictures are to be decoded there.
// Throws Exception HR0716 for kDevice where no output can be finished there, and where T.ToDevice
// says that one is to be, with what stands in the way.
FinishChoice choose_finish(const Plan& plan, FinishUse use, const std::string& device,
                           bool for_decoding = false);

}  // namespace headrace
