// SPDX-License-Identifier: Apache-2.0
// Decodes the HEVC pictures of HEIF files for libheif, with libde265.
//
// Any thread may call it. libheif's own plugin ignores libde265's reports of damage, and both
// libraries deliver blocks that no slice of the file covers, with uninitialized pixels. Here
// reported damage and missing blocks are errors.
#pragma once

#include <libheif/heif.h>

#include "headrace/codecs/run_time_library.h"

namespace headrace {

// Opened on first use.
const RunTimeLibrary& hevc_library();

// The name of our plugin, for heif_decoding_options::decoder_id. The first call registers it
// through `register_plugin`, libheif's function; it does not become the default for other users of
// libheif. REQUIRES: hevc_library() is open.
const char* hevc_decoder_id(decltype(&heif_register_decoder_plugin) register_plugin);

}  // namespace headrace
