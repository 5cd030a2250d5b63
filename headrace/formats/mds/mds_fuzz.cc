// SPDX-License-Identifier: Apache-2.0
// A folder of MDS shards as hostile input: opened, all of it read.
//
// The input changes a sound shard or its index (which, and what its columns are, stands in its
// first byte), or it is an index itself.
#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/formats/mds/mds_test_shards.h"
#include "headrace/formats/source.h"
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

// {u16 place, u8 count, bytes}, again and again.
void apply(const uint8_t* data, size_t size, std::string& bytes) {
  while (size > 3) {
    const size_t at = (data[0] | static_cast<size_t>(data[1]) << 8) % bytes.size();
    const size_t count = std::min<size_t>(data[2] % 8 + 1, size - 3);
    for (size_t i = 0; i < count && at + i < bytes.size(); ++i) {
      bytes[at + i] = static_cast<char>(data[3 + i]);
    }
    data += 3 + count;
    size -= 3 + count;
  }
}

void use(const std::string& path) {
  try {
    const SourcePtr source = open_source(path, {{"format", std::string("mds")}});
    const std::vector<bool> all(source->schema().size(), true);
    size_t sum = source->description().size();
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 100); ++i) {
      RecordData data;
      source->read({&i, 1}, all, {&data, 1});
      for (const FieldData& field : data.fields) {
        for (const uint8_t byte : field.bytes) sum += byte;
      }
    }
    for (const Field& field : source->schema()) sum += source->integer_column(field.name).size();
    if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
  } catch (const Exception& exception) {
    if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
  }
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
    apply(data + 1, size - 1, data[0] & 4 ? index : shard);
  }
  folder.write("shard.00000.mds", shard);
  folder.write("index.json", index);
  use(folder.path());
  return 0;
}
