// SPDX-License-Identifier: Apache-2.0
// A source whose encoded pictures come as they are stored: how many channels they have and of which
// samples stands in their headers, and a plan has to know it before a record is read.
#pragma once

#include "headrace/fields/begin.h"
#include "headrace/sources/source.h"

namespace headrace {

// The same source, whose schema says of encoded pictures what the first one's header says; another
// one that differs is a bad record (HR0129). Throws HR0134 where none of the first records can be
// opened. Where the mode is another than kStored, or nothing is encoded, the source itself.
SourcePtr with_stored_pictures(SourcePtr source, const PictureOptions& options);

}  // namespace headrace
