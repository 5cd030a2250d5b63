// SPDX-License-Identifier: Apache-2.0
// HDF5 files as hostile input: opened by default and dataset by dataset, all rows read.
//
// The input changes a sound file (which one, and how, stands in its first bytes), and checksums are
// made right again, so that the fuzzer gets behind them; or it is a file itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/formats/hdf5/hdf5_test_damage.h"
#include "headrace/formats/source.h"

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

// {u16 place, u8 count, bytes}, again and again.
void apply(std::span<const uint8_t> changes, std::vector<uint8_t>& bytes) {
  while (changes.size() > 3) {
    const size_t place = (changes[0] | changes[1] << 8) % bytes.size();
    const size_t count = std::min<size_t>(changes[2] % 16 + 1, changes.size() - 3);
    for (size_t i = 0; i < count && place + i < bytes.size(); ++i)
      bytes[place + i] = changes[3 + i];
    changes = changes.subspan(3 + count);
  }
}

void use(const std::string& path, const ParamValue& fields) {
  try {
    const SourcePtr source =
        open_source(path, {{"format", std::string("hdf5")}, {"fields", fields}});
    const std::vector<bool> all(source->schema().size(), true);
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 16); ++i) {
      RecordData data;
      data.max_bytes = size_t{1} << 24;
      source->read({&i, 1}, all, {&data, 1});
      size_t sum = source->key(i).size();
      for (const FieldData& field : data.fields) {
        for (uint8_t byte : field.bytes) sum += byte;
      }
      if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
    }
    (void)source->description();
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const Seed seeds[] = {seed_of(kOldHdf5File), seed_of(kYoungHdf5File)};
  static const int descriptor = ::memfd_create("hdf5", 0);
  if (size < 2) return 0;
  const int way = data[0] % 5;
  std::vector<uint8_t> bytes(data + 1, data + size);
  if (way < 4) {
    bytes = seeds[way % 2].bytes;
    apply({data + 1, size - 1}, bytes);
    if (way < 2) correct_hdf5_checksums(seeds[way].parts, bytes);
  }
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  use(path, {});
  for (const char* name :
       {"packed", "lzf", "grows", "everywhere", "text", "bytes", "soft", "links/3"}) {
    use(path, std::vector<std::string>{name});
  }
  return 0;
}
