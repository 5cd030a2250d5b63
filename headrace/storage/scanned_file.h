// SPDX-License-Identifier: Apache-2.0
// A file that a scan reads once from start to end to index its contents, in small pieces such as
// headers.
//
// In an asynchronous storage, each header would cost a request, one after the other. A request
// takes as long as reading some megabytes, so smaller gaps between headers are read, too: in large
// reads, with the next read already in flight.
#pragma once

#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/storage.h"

namespace headrace {

constexpr uint64_t kScanBytes = uint64_t{4} << 20;  // bytes per large read

// Wraps `file`, of an asynchronous storage. For one thread. REQUIRES: file->known().
std::unique_ptr<OpenFile> scanned_file(std::string path, std::unique_ptr<OpenFile> file);

}  // namespace headrace
