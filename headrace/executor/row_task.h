// SPDX-License-Identifier: Apache-2.0
// Everything that determines the bytes of every row: any thread on any machine makes the same rows
// from the same task.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/executor/bad_records.h"
#include "headrace/finish/device_decoding.h"
#include "headrace/finish/device_work.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sources/sound_forms.h"
#include "headrace/sources/source.h"

namespace headrace {

struct RowTask {
  SourcePtr source;
  std::shared_ptr<const Plan> plan;  // shared: batches in progress outlive a closed loader
  SamplerPtr sampler;
  BatchLayout layout;
  uint64_t seed = 0;
  OnError on_error = OnError::kRaise;
  // The outputs whose rows are finished on the device; their batches' fields are `unfinished`.
  DeviceWork left = {};
  // shared: with the loader, and with other makers of its batches.
  std::shared_ptr<DeviceDecoding> decoding = {};
  // By schema field: known properties of its audio; null if unknown.
  std::vector<SoundForms> sounds = {};
};

}  // namespace headrace
