// SPDX-License-Identifier: Apache-2.0
// An LMDB environment as hostile input: opened, all of it read, every key asked for.
//
// The input changes a sound environment (which one, and how its values are read, stands in its
// first byte), or it is an environment itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "headrace/formats/lmdb/lmdb_test_environment.h"
#include "headrace/formats/source.h"

namespace headrace {
namespace {

LmdbTestEnvironment::Entries entries_of(int way) {
  LmdbTestEnvironment::Entries out;
  for (int i = 0; i < 40; ++i) {
    const std::string pixels(way == 1 ? 3 * 4 * 4 : static_cast<size_t>(i) * 40,
                             char('a' + i % 26));
    std::string value = pixels;
    if (way == 1) {
      value = proto_number(1, 3) + proto_number(2, 4) + proto_number(3, 4) +
              proto_bytes(4, pixels) + proto_number(5, uint64_t(i));
    } else if (way == 2) {
      value =
          proto_bytes(
              1, proto_number(1, pixels.size()) + proto_number(2, 3) + proto_bytes(5, pixels)) +
          proto_bytes(1, proto_number(1, 1) + proto_number(2, 2) + proto_number(4, uint64_t(i)));
    }
    out.emplace_back("key" + std::to_string(100 + i), value);
  }
  return out;
}

std::string sound_environment(int way) {
  LmdbTestEnvironment environment;
  const auto tree = environment.add_tree(entries_of(way));
  if (way < 3) return environment.file(tree);
  const auto other = environment.add_tree(entries_of(1));
  return environment.file(environment.add_databases({{"a", tree}, {"b", other}}));
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

void use(const std::string& path, std::map<std::string, ParamValue> arguments) {
  arguments.emplace("format", std::string("lmdb"));
  try {
    const SourcePtr source = open_source(path, arguments);
    const std::vector<bool> all(source->schema().size(), true);
    size_t sum = source->description().size();
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 300); ++i) {
      RecordData data;
      source->read({&i, 1}, all, {&data, 1});
      sum += source->key(i).size();
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
  static const std::vector<std::string> sound = {sound_environment(0), sound_environment(1),
                                                 sound_environment(2), sound_environment(3)};
  static const int descriptor = ::memfd_create("lmdb", 0);
  if (size < 1) return 0;
  const int way = data[0] % 8;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (way < 4) {
    bytes = sound[static_cast<size_t>(way)];
    apply(data + 1, size - 1, bytes);
  }
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  std::map<std::string, ParamValue> arguments;
  if (data[0] & 8) arguments.emplace("recover", true);
  if (way == 3) arguments.emplace("database", std::string("b"));
  if (way != 3 && data[0] & 16) arguments.emplace("values", std::string("bytes"));
  use("/proc/self/fd/" + std::to_string(descriptor), arguments);
  return 0;
}
