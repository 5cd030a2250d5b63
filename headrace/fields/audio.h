// SPDX-License-Identifier: Apache-2.0
// Audio during processing: an encoded AudioClip until an operator needs samples, then a (channels,
// frames) tensor.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/fields/record.h"
#include "headrace/image/render.h"

namespace headrace {

// (channels, frames).
Shape shape_of(const AudioClip& audio);
// Number of frames of an audio value in either form.
int64_t frames_of(const FieldValue& value);
int64_t channels_of(const FieldValue& value);

// Decodes encoded audio to samples; does nothing for other values. HR0355 if it is too long.
Result<void> make_samples(FieldValue& value, Renderer& renderer);

// HR0356 unless the record has the sample rate of the plan.
Result<void> check_rate(const FieldState& state, const FieldValue& value);

}  // namespace headrace
