// SPDX-License-Identifier: Apache-2.0
// A tar archive as hostile input: scanned, opened as a WebDataset in several ways, read
// completely.
//
// The first byte says how the archive is opened, and whether the checksums of its headers are
// corrected, so that the fuzzer gets past them.
#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/tar_test_files.h"

namespace headrace {
namespace {

void use(const std::string& path, int way) {
  std::map<std::string, ParamValue> arguments;
  if (way & 1) arguments["missing"] = std::string(way & 2 ? "skip" : "empty");
  if (way & 4) arguments["fields"] = std::vector<std::string>{"x=jpg;png", "cls", "npy", "json"};
  if (way & 8) arguments["json_fields"] = std::vector<std::string>{"a:int64", "b=c.d:text"};
  open_and_read(path, "webdataset", arguments, {.records = 200});
}

void walk(std::span<const uint8_t> bytes) {
  TarInput input(bytes);
  TarWalker walker(input);
  uint64_t before = 0;
  for (TarMember member;;) {
    const Result<bool> more = walker.next(member);
    if (!more || !*more) return;
    const bool inside = member.begin >= before && member.data > member.begin &&
                        member.bytes <= bytes.size() - member.data && member.end <= bytes.size();
    if (!inside) std::abort();
    before = member.data + member.bytes;
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  for (size_t at = 0; (data[0] & 16) && at + 512 <= bytes.size(); at += 512) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    std::string header = bytes.substr(at, 512);
    set_tar_checksum(header);
    bytes.replace(at, 512, header);
  }
  walk(bytes_of(bytes));
  use(file_of(bytes_of(bytes)), data[0]);
  return 0;
}
