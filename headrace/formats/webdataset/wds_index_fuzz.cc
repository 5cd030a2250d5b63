// SPDX-License-Identifier: Apache-2.0
// An index as hostile input, with an archive that may be hostile, too: the first byte is the length
// of the index in units of 16 bytes, then come the index and the archive.
#include <cstdlib>

#include "headrace/formats/webdataset/wds_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  const size_t length = std::min<size_t>(size - 1, size_t{data[0]} * 16);
  const std::string_view index(reinterpret_cast<const char*>(data + 1), length);
  const std::span<const uint8_t> tar(data + 1 + length, size - 1 - length);
  TarInput input(tar);
  uint64_t before = 0;
  const auto take = [&](const TarMember& member, const WdsName& name, bool) {
    const bool inside = member.begin >= before && member.data > member.begin &&
                        member.data <= tar.size() && member.bytes <= tar.size() - member.data &&
                        member.end <= tar.size();
    if (!inside || name.extension.size() > size) std::abort();
    before = member.data + member.bytes;
  };
  (void)take_wds_index(input, index, take, [](uint64_t) {});
  return 0;
}
