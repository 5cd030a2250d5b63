// SPDX-License-Identifier: Apache-2.0
// Audio during processing: a Sound until a step needs samples, then (channels, frames) of numbers.
#pragma once

#include <cstdint>
#include <span>

#include "headrace/fields/record.h"
#include "headrace/image/render.h"

namespace headrace {

// (channels, frames).
Shape shape_of(const Sound& sound);
// Number of frames of an audio value in either form.
int64_t frames_of(const FieldValue& audio);
int64_t channels_of(const FieldValue& audio);

// An encoded sound becomes its samples; any other value stays. HR0355 where it is too long.
Result<void> make_samples(FieldValue& value, Renderer& renderer);

// HR0356 unless the record has the rate that the plan's records have.
Result<void> check_rate(const FieldState& state, const FieldValue& value);

}  // namespace headrace
