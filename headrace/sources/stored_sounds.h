// SPDX-License-Identifier: Apache-2.0
// A source whose sounds tell what they are: how many channels and which sample rate they have
// stands in their headers, and a plan has to know it before a record is read.
#pragma once

#include "headrace/sources/source.h"

namespace headrace {

// The same source, whose schema says of encoded sounds what the first one's header says. Where none
// of the first records can be opened it throws the first one's error, as HR0357. Where nothing is
// a sound, the source itself.
SourcePtr with_stored_sounds(SourcePtr source);

// The frames of every record's sound, by its header; of a bad record -1. Reads all records once.
// REQUIRES: an encoded field of sounds. Throws what `progress` throws.
std::vector<int64_t> sound_lengths(const Source& source, size_t field, const Progress& progress);

}  // namespace headrace
