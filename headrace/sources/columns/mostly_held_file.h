// SPDX-License-Identifier: Apache-2.0
// A video in a separate file of asynchronous storage, with most of the required ranges in memory,
// so that a few more reads should be enough. If its table is wrong (for example about key frames),
// the rest of the file is read at once, instead of packet by packet.
#pragma once

#include <cstdint>
#include <functional>

#include "headrace/storage/file.h"

namespace headrace {

// `tell`: called before the rest is read. The file is not read whole if it has more than
// `max_bytes`.
File mostly_held_file(File file, const FileIdentity& identity, uint64_t max_bytes,
                      std::function<void()> tell);

}  // namespace headrace
