// SPDX-License-Identifier: Apache-2.0
// A file that is read once from start to end, in small pieces, for an index of its contents:
// headers that a scan reads.
//
// From an asynchronous storage each hop would cost a request, one after the other. A request
// takes as long as some megabytes of data, so what lies between headers is read too where it is
// less than that: by large reads, the next of which is under way meanwhile.
#pragma once

#include <memory>
#include <string>

#include "headrace/base/error.h"
#include "headrace/storage/storage.h"

namespace headrace {

constexpr uint64_t kScanBytes = uint64_t{4} << 20;  // of each large read

// Reads `file`, of an asynchronous storage. Its reads belong to one thread.
// REQUIRES: file->known().
std::unique_ptr<OpenFile> scanned_file(std::string path, std::unique_ptr<OpenFile> file);

}  // namespace headrace
