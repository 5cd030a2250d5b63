// SPDX-License-Identifier: Apache-2.0
// Finds the samples of a shard by one scan of its headers.
#pragma once

#include <string>
#include <vector>

#include "headrace/formats/shards/container_index.h"
#include "headrace/formats/shards/unpacked_files.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/wds_fields.h"
#include "headrace/formats/webdataset/wds_index.h"

namespace headrace {

// A record is one sample, from its first header to the last block of its last member, so that
// records are contiguous. A file's index is used instead of the scan if it matches. With `needed`,
// samples that lack one of the fields are left out. The arguments must outlive the result.
ScanFile scan_of_wds(const UnpackedFiles& files, const WdsIndexes& indexes,
                     const std::vector<WdsField>* needed = nullptr);

// The parameters that affect the result of a filtered scan, as text.
std::string components_text(const std::vector<WdsField>& fields);

inline bool is_file(const TarMember& member) {
  return member.kind == TarKind::kFile || member.kind == TarKind::kSparse;
}

// Calls `use(member, name)` for each member of a record that belongs to a sample, until it returns
// false or the record ends. Invalid data also ends it, with the error of TarWalker. `input`: the
// whole file.
template <class Use>
Result<void> each_member(TarInput& input, const Extent& extent, const Use& use) {
  TarWalker walker(input, extent.offset);
  for (TarMember member;;) {
    Result<bool> more = walker.next(member);
    if (!more) return std::move(more.error());
    if (!*more || member.begin - extent.offset >= extent.bytes) return {};
    const std::optional<WdsName> name = wds_name(member.name);
    if (name && is_file(member) && !use(member, *name)) return {};
  }
}

}  // namespace headrace
