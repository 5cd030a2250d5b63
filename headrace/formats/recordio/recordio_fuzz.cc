// SPDX-License-Identifier: Apache-2.0
// RecordIO as hostile input: any file, and any data inside of frames that are mostly sound.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/formats/recordio/recordio_frames.h"
#include "headrace/formats/source.h"

namespace headrace {
namespace {

// Parts of at most 40 bytes; each takes its kind, and now and then its length, from the input.
std::vector<uint8_t> framed(std::span<const uint8_t> input) {
  std::vector<uint8_t> out;
  while (input.size() > 2) {
    const uint32_t kind = input[0] % 4, count = std::min<uint32_t>(input[1] % 41, input.size() - 2);
    const uint32_t length = input[0] >= 240 ? count ^ input[1] : count;
    const uint32_t words[2] = {kRecordIoMagic, kind << 29 | length};
    const auto* raw = reinterpret_cast<const uint8_t*>(words);
    out.insert(out.end(), raw, raw + sizeof words);
    out.insert(out.end(), input.begin() + 2, input.begin() + 2 + count);
    out.resize((out.size() + 3) / 4 * 4);
    input = input.subspan(2 + count);
  }
  return out;
}

void read_all(const Source& source) {
  const std::vector<bool> all(source.schema().size(), true);
  for (int64_t i = 0; i < std::min<int64_t>(source.size(), 50); ++i) {
    RecordData data;
    data.max_bytes = size_t{1} << 20;
    source.read({&i, 1}, all, {&data, 1});
    size_t sum = source.key(i).size();
    for (const FieldData& field : data.fields) {
      for (uint8_t byte : field.bytes) sum += byte;
    }
    if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
  }
  (void)source.integer_column("label");
}

void use(const std::string& path, const std::map<std::string, ParamValue>& more) {
  std::map<std::string, ParamValue> arguments = more;
  arguments["format"] = std::string("recordio");
  try {
    read_all(*open_source(path, arguments));
  } catch (const Exception&) {
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const int descriptor = ::memfd_create("recordio", 0);
  static const bool no_cache = ::setenv("HEADRACE_CACHE", "", 1) == 0;
  if (size < 1 || !no_cache) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  const std::vector<uint8_t> bytes =
      data[0] % 2 ? framed(input) : std::vector<uint8_t>(input.begin(), input.end());
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  std::vector<RecordIoKey> keys;
  parse_recordio_index({reinterpret_cast<const char*>(input.data()), input.size()}, keys);
  use(path, {});
  use(path, {{"header", true}, {"label_dtype", DType::kInt64}, {"verify", false}});
  use(path, {{"header", true}, {"label_shape", std::vector<int64_t>{-1, 2}}});
  return 0;
}
