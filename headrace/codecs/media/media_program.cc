// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_program.h"

#include "headrace/base/own_folder.h"

// In builds without it, which have no program either.
#if !defined(HEADRACE_AV_PACKAGE)
#define HEADRACE_AV_PACKAGE "libavcodec-dev"
#endif

namespace headrace {

std::string media_program() { return (own_folder() / "headrace-av").string(); }

const char* media_package() { return HEADRACE_AV_PACKAGE; }

}  // namespace headrace
