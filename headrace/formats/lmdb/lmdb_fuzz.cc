// SPDX-License-Identifier: Apache-2.0
// An LMDB environment as hostile input: opened and read completely, every key requested.
//
// The input modifies a valid environment (its first byte says which one, and how its values are
// read), or it is an environment itself.
#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/lmdb/lmdb_test_environment.h"

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
    } else if (way == 2) {  // a picture file
      value = std::string("\xFF\xD8\xFF\xE0\0\x10JFIF\0", 11) + pixels;
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

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const std::vector<std::string> sound = {sound_environment(0), sound_environment(1),
                                                 sound_environment(2), sound_environment(3)};
  if (size < 1) return 0;
  const int way = data[0] % 8;
  const std::span<const uint8_t> input(data + 1, size - 1);
  std::string changed = sound[static_cast<size_t>(way % 4)];
  if (way < 4) change(bytes_of(changed), input);
  std::map<std::string, ParamValue> arguments;
  if (data[0] & 8) arguments.emplace("recover", true);
  if (way == 3) arguments.emplace("database", std::string("b"));
  if (way != 3 && data[0] & 16) arguments.emplace("values", std::string("bytes"));
  open_and_read(file_of(way < 4 ? bytes_of(changed) : input), "lmdb", arguments, {.records = 300});
  return 0;
}
