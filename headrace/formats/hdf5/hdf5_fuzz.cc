// SPDX-License-Identifier: Apache-2.0
// HDF5 files as hostile input: opened by default and dataset by dataset, all rows read.
//
// The input modifies a valid file (its first bytes say which one, and how), with corrected
// checksums, so that the fuzzer gets past them; or it is a file itself.
#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/hdf5/hdf5_test_damage.h"

namespace headrace {
namespace {

struct Seed {
  std::vector<uint8_t> bytes;
  std::vector<Hdf5Checked> parts;
};

Seed seed_of(std::string_view packed) {
  std::vector<uint8_t> bytes = hdf5_test_file(packed);
  std::vector<Hdf5Checked> parts = hdf5_checked_parts(bytes);
  return {std::move(bytes), std::move(parts)};
}

void use(const std::string& path, const ParamValue& fields) {
  open_and_read(path, "hdf5", {{"fields", fields}},
                {.records = 16, .record_bytes = size_t{1} << 24});
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const Seed seeds[] = {seed_of(kOldHdf5File), seed_of(kYoungHdf5File)};
  if (size < 2) return 0;
  const int way = data[0] % 5;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (way < 4) {
    bytes = seeds[way % 2].bytes;
    change(bytes, {data + 1, size - 1}, 16);
    if (way < 2) correct_hdf5_checksums(seeds[way].parts, bytes);
  }
  const std::string path = file_of(bytes);
  use(path, {});
  for (const char* name :
       {"packed", "lzf", "grows", "everywhere", "text", "bytes", "soft", "links/3"}) {
    use(path, std::vector<std::string>{name});
  }
  return 0;
}
