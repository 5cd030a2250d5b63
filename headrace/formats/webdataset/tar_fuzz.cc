// SPDX-License-Identifier: Apache-2.0
// A tar archive as hostile input: walked, opened as a WebDataset in several ways, all of it read.
//
// The first byte says how the archive is opened, and whether the checksums of its headers are made
// right, so that the fuzzer gets behind them.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/formats/source.h"
#include "headrace/formats/webdataset/tar.h"
#include "headrace/formats/webdataset/tar_test_files.h"

namespace headrace {
namespace {

void read_all(const Source& source) {
  const std::vector<bool> all(source.schema().size(), true);
  for (int64_t i = 0; i < std::min<int64_t>(source.size(), 200); ++i) {
    RecordData data;
    source.read({&i, 1}, all, {&data, 1});
    size_t sum = source.key(i).size();
    for (const FieldData& field : data.fields) {
      for (const uint8_t byte : field.bytes) sum += byte;
    }
    if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
  }
  for (const Field& field : source.schema()) {
    const std::vector<int64_t> column = source.integer_column(field.name);
    if (!column.empty() && column.size() != static_cast<size_t>(source.size())) std::abort();
  }
  (void)source.description();
}

void use(const std::string& path, int way) {
  std::map<std::string, ParamValue> arguments = {{"format", std::string("webdataset")}};
  if (way & 1) arguments["missing"] = std::string(way & 2 ? "skip" : "empty");
  if (way & 4) arguments["fields"] = std::vector<std::string>{"x=jpg;png", "cls", "npy", "json"};
  if (way & 8) arguments["json_fields"] = std::vector<std::string>{"a:int64", "b=c.d:text"};
  try {
    read_all(*open_source(path, arguments));
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
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
  static const int descriptor = ::memfd_create("tar", 0);
  static const bool no_cache = ::setenv("HEADRACE_CACHE", "", 1) == 0;
  if (size < 1 || !no_cache) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  for (size_t at = 0; (data[0] & 16) && at + 512 <= bytes.size(); at += 512) {
    if (bytes.compare(at + 257, 5, "ustar") != 0) continue;
    std::string header = bytes.substr(at, 512);
    set_tar_checksum(header);
    bytes.replace(at, 512, header);
  }
  walk({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  use("/proc/self/fd/" + std::to_string(descriptor), data[0]);
  return 0;
}
