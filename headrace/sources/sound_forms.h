// SPDX-License-Identifier: Apache-2.0
// Facts from the headers of a source's audio: length, sample rate, number of channels. Read once,
// on demand; kept in the process for loaders, and in the user's cache folder for later runs
// (header_cache.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/sources/source.h"

namespace headrace {

struct SoundForm {
  int64_t frames = -1;  // -1: a bad record
  int32_t sample_rate = 0, channels = 0;
};

// One per record. shared: with the loaders that group batches by length.
using SoundForms = std::shared_ptr<const std::vector<SoundForm>>;

// Reads the headers of all records once. REQUIRES: a field of encoded audio. Throws what `progress`
// throws.
SoundForms read_sound_forms(const Source& source, size_t field, const Progress& progress);
// Per schema field: what was read from this source before; null if nothing was, or if the field is
// not encoded audio. A hint only: files may have changed.
std::vector<SoundForms> known_sound_forms(const Source& source);

}  // namespace headrace
