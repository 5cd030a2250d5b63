// SPDX-License-Identifier: Apache-2.0
// Everything that determines the bytes of every row. Each maker of rows, on any thread or machine,
// makes the same ones from the same task.
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
  std::shared_ptr<const Plan> plan;  // shared: batches under way outlive a closed loader
  SamplerPtr sampler;
  BatchLayout layout;
  uint64_t seed = 0;
  OnError on_error = OnError::kRaise;
  // Whose rows are finished on the device, and their batches' fields `unfinished`.
  DeviceWork left = {};
  // shared: with the loader, and what else makes batches for it.
  std::shared_ptr<DeviceDecoding> decoding = {};
  // By schema field: what is known of its audio, null where nothing is.
  std::vector<SoundForms> sounds = {};
};

}  // namespace headrace
