// SPDX-License-Identifier: Apache-2.0
// The layout of ragged fields' rows, predicted before any of them is read (Note [Lengths first] in
// ops/op.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/executor/batch/batch_builder.h"
#include "headrace/pipeline/plan.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sources/sound_forms.h"

namespace headrace {

struct Prediction {
  PredictedRows rows;
  size_t bytes = 0;  // of their tensors
};

// Predicts a batch at these positions. sounds: by schema field, known properties of its audio, null
// if unknown; `index_at`: the record at a position. Predicts nothing if it would take more than
// `most` bytes.
Prediction predict(const Plan& plan, const std::vector<SoundForms>& sounds, uint64_t seed,
                   uint64_t epoch, BatchRange range,
                   const std::function<int64_t(int64_t position)>& index_at, size_t most);

}  // namespace headrace
