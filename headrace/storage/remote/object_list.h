// SPDX-License-Identifier: Apache-2.0
// A page of a bucket's listing (ListObjectsV2 and its like), as entries of one folder.
#pragma once

#include <string_view>

#include "headrace/base/error.h"
#include "headrace/storage/remote/cloud.h"

namespace headrace {

// `prefix` is that of the request, with its "/" at the end. Keys that are no name in a folder are
// left out: the folder's own marker, and names that are empty, "." or "..". HR0224 where the answer
// is no listing, or lists what does not begin with the prefix.
Result<ListPage> list_page_of_xml(std::string_view body, std::string_view prefix);

}  // namespace headrace
