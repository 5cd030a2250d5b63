// SPDX-License-Identifier: Apache-2.0
// A pack whose bytes are changed, unpacked into a folder: nothing is written outside of it.
//
// The input changes a valid pack, and checksums are corrected, so that the fuzzer gets to the names
// under which files are written.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "headrace/formats/pack/pack.h"
#include "headrace/formats/pack/pack_test_damage.h"
#include "headrace/sources/columns/columns.h"
#include "headrace/sources/fuzz_source.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

// A pack of files in folders, with labels.
std::vector<uint8_t> sound_pack() {
  const TemporaryFolder folder;
  PathColumn paths;
  for (const char* name : {"cat/a.txt", "cat/b.txt", "dog/long-name-of-a-file.txt", "e"}) {
    paths.paths.push_back(folder.write(name, "what " + std::string(name) + " holds"));
  }
  TextColumn labels{{"cat", "cat", "dog", "e"}};
  std::vector<Column> columns;
  columns.push_back({.name = "data", .values = std::move(paths), .kind = FieldKind::kBytes});
  columns.push_back({.name = "label", .values = std::move(labels), .kind = {}});
  PackOptions options;
  options.threads = 1;
  pack({records(std::move(columns))}, folder / "sound", options);
  std::ifstream file(folder / "sound", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const std::vector<uint8_t> sound = sound_pack();
  static const TemporaryFolder around;
  if (size < 2) return 0;
  std::vector<uint8_t> bytes = sound;
  change(bytes, {data + 1, size - 1}, 32);
  correct_checksums(bytes);
  const std::string inside = around / "inside";
  UnpackOptions options;
  options.threads = 1;
  options.overwrite = data[0] & 1;
  options.recover = data[0] & 2;
  try {
    unpack(file_of(bytes), inside, options);
  } catch (const Exception&) {
  }
  for (const auto& entry : fs::directory_iterator(around.path())) {
    if (entry.path() != inside) std::abort();
  }
  fs::remove_all(inside);
  return 0;
}
