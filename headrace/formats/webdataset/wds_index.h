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

// The indexes in `given`, in file order, or those next to the files: "x.idx" or "x.tar.idx" for
// "x.tar" or "x.tar.gz". `names`: the files as known to the user; `paths`: the files to read, by
// which the result is keyed. Throws Exception HR0459 if their numbers differ.
WdsIndexes indexes_of(const std::vector<std::string>& names, const std::vector<std::string>& paths,
                      const std::optional<std::string>& given,
                      const std::vector<std::string_view>& suffixes);

// The indexes with their sizes and times, as text, since a cached scan depends on them. Empty if
// there are none.
std::string indexes_text(const WdsIndexes& indexes);

// HR0459.
Error unfit_index(const std::string& index, const std::string& file, const std::string& why);

// Called for each member. `begins`: it is the first member of its sample. In v1.1 the key is empty,
// unless the sample is a single image, whose folder may be its class.
using TakeMember = std::function<void(const TarMember& member, const WdsName& name, bool begins)>;

// Calls `take` for each component and link, in the archive's order, if the index covers the archive
// exactly. Otherwise returns the reason, and everything passed to `take` is invalid.
//
// Tar headers are read where there may be additional headers between components, for some samples
// as a check, and for the first sample with a new extension. Otherwise the index is trusted: a
// record's headers are checked when the record is read.
std::optional<std::string> take_wds_index(TarInput& tar, std::string_view index,
                                          const TakeMember& take,
                                          const std::function<void(uint64_t)>& passed);

}  // namespace headrace
