// SPDX-License-Identifier: Apache-2.0
// Errors of headrace-av and of the communication with it, for all media.
#pragma once

#include <string>

#include "headrace/base/error.h"
#include "headrace/codecs/media/media_protocol.h"

namespace headrace {

Error damaged_media(std::string what);                       // HR0368
Error ended_media_process(std::string what);                 // HR0369
Error no_media_process(std::string what, std::string hint);  // HR0370
Error undecoded_video(std::string what, std::string hint);   // HR0371

// HR0369: the program sent an invalid reply.
Error senseless_reply(const char* what);
// The error that a reply reports: HR0368, HR0370 or HR0371.
Error failure_of(const media::Reply& reply);

}  // namespace headrace
