// SPDX-License-Identifier: Apache-2.0
// RecordIO as hostile input: any file, and any data inside of mostly valid frames.
#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/recordio/recordio_frames.h"

namespace headrace {
namespace {

// Parts of at most 40 bytes; each takes its type, and sometimes its length, from the input.
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

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  const std::string path = data[0] % 2 ? file_of(framed(input)) : file_of(input);
  std::vector<RecordIoKey> keys;
  parse_recordio_index({reinterpret_cast<const char*>(input.data()), input.size()}, keys);
  const FuzzReads reads{.records = 50, .record_bytes = size_t{1} << 20};
  open_and_read(path, "recordio", {}, reads);
  open_and_read(path, "recordio",
                {{"header", true}, {"label_dtype", DType::kInt64}, {"verify", false}}, reads);
  open_and_read(path, "recordio", {{"header", true}, {"label_shape", std::vector<int64_t>{-1, 2}}},
                reads);
  return 0;
}
