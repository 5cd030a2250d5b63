// SPDX-License-Identifier: Apache-2.0
// A source whose audio fields have known channels and sample rate: they are in the headers, and a
// plan needs them before a record is read.
#pragma once

#include "headrace/sources/source.h"

namespace headrace {

// The same source, whose schema says of encoded sounds what the first one's header says. Where none
// of the first records can be opened it throws the first one's error, as HR0357. Where nothing is
// a sound, the source itself.
SourcePtr with_stored_sounds(SourcePtr source);

}  // namespace headrace
