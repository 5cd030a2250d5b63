// SPDX-License-Identifier: Apache-2.0
// TFRecords as hostile input: any file, and any message inside of sound frames, read with guessed
// and with given fields. A message's label is the same whether the record is read or only that.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "headrace/formats/source.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"

namespace headrace {
namespace {

void put(const void* bytes, size_t count, std::vector<uint8_t>& out) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  out.insert(out.end(), from, from + count);
}

void put_frame(std::span<const uint8_t> data, std::vector<uint8_t>& out) {
  const uint64_t length = data.size();
  uint8_t raw[8];
  std::memcpy(raw, &length, sizeof raw);
  const uint32_t of_length = masked_crc32c(raw), of_data = masked_crc32c(data);
  put(raw, sizeof raw, out);
  put(&of_length, sizeof of_length, out);
  put(data.data(), data.size(), out);
  put(&of_data, sizeof of_data, out);
}

void read_all(const Source& source) {
  const std::vector<bool> all(source.schema().size(), true);
  std::vector<int64_t> values;
  bool good = true;
  for (int64_t i = 0; i < std::min<int64_t>(source.size(), 50); ++i) {
    RecordData data;
    data.max_bytes = size_t{1} << 20;
    source.read({&i, 1}, all, {&data, 1});
    good = good && data.result.has_value();
    size_t sum = source.key(i).size();
    for (const FieldData& field : data.fields) {
      for (uint8_t byte : field.bytes) sum += byte;
    }
    if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
    for (size_t field = 0; field < all.size() && good; ++field) {
      if (source.schema()[field].name == "label") values.push_back(data.fields[field].scalar);
    }
  }
  if (good && source.size() <= 50 && source.size() == static_cast<int64_t>(values.size())) {
    const std::vector<int64_t> column = source.integer_column("label");
    if (!column.empty() && column != values) std::abort();
  }
}

void use(const std::string& path, const std::map<std::string, ParamValue>& more) {
  std::map<std::string, ParamValue> arguments = more;
  arguments["format"] = std::string("tfrecord");
  try {
    read_all(*open_source(path, arguments));
  } catch (const Exception&) {
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const int descriptor = ::memfd_create("tfrecord", 0);
  static const bool no_cache = ::setenv("HEADRACE_CACHE", "", 1) == 0;
  if (size < 1 || !no_cache) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  std::vector<uint8_t> bytes;
  if (data[0] % 4 == 0) {
    bytes.assign(input.begin(), input.end());
  } else {  // one to three records
    const size_t records = data[0] % 4, part = input.size() / records;
    for (size_t i = 0; i < records; ++i) put_frame(input.subspan(i * part, part), bytes);
  }
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  using Texts = std::vector<std::string>;
  use(path, {});
  use(path, {{"content", std::string("example")}, {"missing", std::string("empty")}});
  use(path, {{"fields", Texts{"label=l:int64[]", "t:text", "f:float32[-1]", "u:uint8[-1,2]",
                              "i:int64[-1]", "image=e:image"}},
             {"label_offset", int64_t{-1}}});
  return 0;
}
