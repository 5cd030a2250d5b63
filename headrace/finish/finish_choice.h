// SPDX-License-Identifier: Apache-2.0
// Decides where the last part of a pipeline's work on pictures is done: by the decoding threads, or
// on the device that batches are copied to, which then receives bytes instead of floats. The last
// part is lookup tables, value mapping, flip, erased rectangle, layout and dtype, and mixing of
// rows. Batches are the same either way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/finish/device_work.h"
#include "headrace/pipeline/plan.h"

namespace headrace {

// kAuto: on the device if that copies fewer bytes.
enum class FinishUse : uint8_t { kHost, kAuto, kDevice };

struct FinishChoice {
  std::vector<FinishPlace> places = {};  // by output; empty: all on the host
  // "cuda:0: "image" is copied as uint8, 147.0 KiB per record instead of 588.0 KiB"
  std::string text = {};
  bool asked = false;  // requested by T.ToDevice, so there is no fallback to the host
  // By output: finished on the device, and a single picture per record, not a clip.
  std::vector<bool> decodable = {};

  bool any() const { return !places.empty(); }
};

// device: name of the device that batches go to; empty: none. for_decoding: also choose outputs
// that are delivered as bytes, because their pictures will be decoded there. Throws Exception
// HR0716, with the reason, for kDevice if no output can be finished there, and if T.ToDevice
// requests one that cannot be.
FinishChoice choose_finish(const Plan& plan, FinishUse use, const std::string& device,
                           bool for_decoding = false);

}  // namespace headrace
