// SPDX-License-Identifier: Apache-2.0
// Facts from the headers of a source's audio: length, sample rate, number of
// channels. Read once, on demand; kept in the process for loaders, and in the user's cache for
// later runs (kept_headers.h).
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

// By record. shared: with the loaders that make batches by it.
using SoundForms = std::shared_ptr<const std::vector<SoundForm>>;

// Reads all records once. REQUIRES: an encoded field of sounds. Throws what `progress` throws.
SoundForms read_sound_forms(const Source& source, size_t field, const Progress& progress);
// By schema field: what was read of such a source before; null where nothing was, and of what is no
// encoded sound. A hint, not a promise: files may have changed.
std::vector<SoundForms> known_sound_forms(const Source& source);

}  // namespace headrace
