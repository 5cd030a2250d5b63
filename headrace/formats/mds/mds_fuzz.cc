// SPDX-License-Identifier: Apache-2.0
// A folder of MDS shards as hostile input: opened and read completely.
//
// The input modifies a valid shard or its index (its first byte says which, and its columns), or
// it is an index itself.
#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/mds/mds_test_shards.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

const std::vector<MdsTestColumn> kColumns[] = {
    {{"label", "int", 8}, {"image", "pil", 0}, {"text", "str", 0}},
    {{"a", "ndarray", 0}, {"b", "ndarray:float32", 0}, {"c", "ndarray:uint8:2,3", 6}},
    {{"label", "str_int", 0}, {"x", "str_float", 0}, {"image", "jpeg", 0}, {"u", "uint16", 2}}};

std::vector<MdsTestSample> samples_of(int kind) {
  std::vector<MdsTestSample> out;
  for (int i = 0; i < 5; ++i) {
    if (kind == 0) {
      const std::string picture = little_endian(uint32_t{2}) + little_endian(uint32_t{2}) +
                                  little_endian(uint32_t{3}) + "RGB" + std::string(12, char(i));
      out.push_back({little_endian(int64_t{i}), picture, "text"});
    } else if (kind == 1) {
      out.push_back({std::string("\x08\x08\x02\x03", 4) + "abcdef",
                     std::string("\x04\x01", 2) + little_endian(1.5f), "abcdef"});
    } else {
      out.push_back({std::to_string(i), "1e3", "\xFF\xD8\xFF", little_endian(uint16_t{7})});
    }
  }
  return out;
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const TemporaryFolder folder;
  if (size < 1) return 0;
  const int kind = data[0] % 4;
  const auto& columns = kColumns[kind % 3];
  std::string shard = mds_shard(columns, samples_of(kind % 3));
  std::string index = mds_index(columns, {{.samples = 5}});
  if (kind == 3) {
    index.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  } else {
    change(bytes_of(data[0] & 4 ? index : shard), {data + 1, size - 1});
  }
  folder.write("shard.00000.mds", shard);
  folder.write("index.json", index);
  open_and_read(folder.path(), "mds");
  return 0;
}
