// SPDX-License-Identifier: Apache-2.0
// Sources whose encoded pictures are delivered as stored, and whose audio has known channels and
// sample rate: these are in their headers, and a plan needs them before a record is read.
#pragma once

#include <functional>
#include <string_view>

#include "headrace/fields/begin.h"
#include "headrace/sources/source.h"

namespace headrace {

// With kStored the same source, whose schema says of the encoded pictures that are `wanted` what
// the first one's header says; another one that differs is a bad record (HR0129). With another mode
// the source itself. Throws HR0134 where none of the first records can be opened, HR0137 where a
// mode other than kRGB has nothing to decode, and what storage says.
SourcePtr with_stored_pictures(const SourcePtr& source, const PictureOptions& options,
                               const std::function<bool(std::string_view field)>& wanted);

// The same source, whose schema says of encoded sounds what the first one's header says. Where none
// of the first records can be opened it throws the first one's error, as HR0357. Where nothing is
// a sound, the source itself.
SourcePtr with_stored_sounds(SourcePtr source);

}  // namespace headrace
