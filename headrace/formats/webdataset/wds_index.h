// SPDX-License-Identifier: Apache-2.0
// An index of a tar archive as NVIDIA's wds2idx writes it: "v1.2" and the number of samples, then a
// line per sample: for each component the extension, the offset and size of its data and, from v1.2
// on, its name.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/wds_sample.h"

namespace headrace {

// The index of each file, if there is one.
struct WdsIndexes {
  std::map<std::string, std::string> paths;
  bool named = false;  // given by the caller, so that one that does not match is an error
};

// The indexes in `given`, in file order, or those next to the files: for "x.tar" or "x.tar.gz"
// "x.idx", "x.tar.idx". Files are known to the caller by `names`, and the result uses `paths`.
// Throws Exception HR0459 if their numbers differ.
WdsIndexes indexes_of(const std::vector<std::string>& names, const std::vector<std::string>& paths,
                      const std::optional<std::string>& given,
                      const std::vector<std::string_view>& suffixes);

// The indexes that a cached scan depends on, with their sizes and times. Empty if there are none.
std::string indexes_text(const WdsIndexes& indexes);

// HR0459.
Error unfit_index(const std::string& index, const std::string& file, const std::string& why);

// Takes a member. `begins`: it is the first one of its sample. In v1.1 the key is empty, unless the
// sample is a single picture, whose folder may be its class.
using TakeMember = std::function<void(const TarMember& member, const WdsName& name, bool begins)>;

// Calls `take` for each component, and for links, in the archive's order, if the index covers
// exactly the archive. Otherwise returns why not, and everything taken is invalid.
//
// Headers are read if there may be others in between, for some samples, and for the first sample
// with a new extension. For all others the index is trusted: a record's own headers are read with
// the record.
std::optional<std::string> take_wds_index(TarInput& tar, std::string_view index,
                                          const TakeMember& take,
                                          const std::function<void(uint64_t)>& passed);

}  // namespace headrace
