// SPDX-License-Identifier: Apache-2.0
// A page of a bucket's listing (ListObjectsV2 and its like), as entries of one folder.
#pragma once

#include <string>
#include <string_view>
#include <unordered_set>

#include "headrace/base/error.h"
#include "headrace/storage/remote/cloud.h"

namespace headrace {

// `prefix` is that of the request, with its "/" at the end. The folder's own marker is left out.
// HR0224 where the answer is no listing, or lists what does not begin with the prefix; HR0227 where
// a key is no path, as its part after the prefix is empty, "." or "..".
Result<ListPage> list_page_of_xml(std::string_view body, std::string_view prefix);

// What the pages of one listing have named: a file that came twice would be two records.
class ListedNames {
 public:
  // HR0224 for a file that is named again. A folder that is named again leaves the page.
  Result<void> take(ListPage& page);

 private:
  std::unordered_set<std::string> files_, folders_;
};

}  // namespace headrace
