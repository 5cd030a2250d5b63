// SPDX-License-Identifier: Apache-2.0
// Sources whose encoded images are delivered in their stored format, and whose audio has known
// channels and sample rate: all of these are in file headers, and a plan needs them before any
// record is read.
#pragma once

#include <functional>
#include <string_view>

#include "headrace/fields/begin.h"
#include "headrace/sources/source.h"

namespace headrace {

// With mode kStored: the same source, with a schema in which the `wanted` encoded images have the
// format in the first image's header; an image with another format is a bad record (HR0129). With
// other modes: the source itself. Throws HR0134 if none of the first records can be opened, HR0137
// if a mode other than kRGB has nothing to decode, and storage errors.
SourcePtr with_stored_pictures(const SourcePtr& source, const PictureOptions& options,
                               const std::function<bool(std::string_view field)>& wanted);

// The same source, with a schema in which encoded audio has the channels and sample rate in the
// first header. If none of the first records can be opened, throws the first one's error, as
// HR0357. The source itself if it has no audio.
SourcePtr with_stored_sounds(SourcePtr source);

}  // namespace headrace
