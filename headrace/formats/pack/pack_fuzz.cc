// SPDX-License-Identifier: Apache-2.0
// A pack as hostile input: opened both ways, read completely, its pages compared with its index.
//
// The input modifies a valid pack (its first bytes say which one, and how), with corrected
// checksums, so that the fuzzer gets past them; or it is a pack itself.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/pack/pack.h"
#include "headrace/formats/pack/pack_test_damage.h"
#include "headrace/sources/columns/columns.h"

namespace headrace {
namespace {

constexpr int kRecords = 12;

// Fields of every storage type: text, column, wide blobs; and several pages.
std::vector<uint8_t> sound_pack(uint64_t page_bytes) {
  TextColumn texts;
  static std::vector<float> wide(kRecords * 30);
  static std::vector<int64_t> labels(kRecords);
  for (int i = 0; i < kRecords; ++i) {
    texts.values.push_back(std::string(static_cast<size_t>(i) * 50, 'a'));
    labels[static_cast<size_t>(i)] = i % 3;
  }
  std::vector<Column> columns;
  columns.push_back({.name = "text", .values = texts, .kind = {}});
  columns.push_back(
      {.name = "wide",
       .values =
           ArrayColumn{
               .data = wide.data(), .dtype = DType::kFloat32, .count = kRecords, .shape = {5, 6}},
       .kind = {}});
  columns.push_back(
      {.name = "label",
       .values = ArrayColumn{.data = labels.data(), .dtype = DType::kInt64, .count = kRecords},
       .kind = {}});
  const auto path =
      std::filesystem::temp_directory_path() / ("headrace-fuzz-" + std::to_string(::getpid()));
  PackOptions options;
  options.page_bytes = page_bytes;
  options.threads = 1;
  options.overwrite = true;
  pack({records(std::move(columns))}, path, options);
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove(path);
  return bytes;
}

// From the start, or from the end, where the sections are.
size_t place_of(size_t word, size_t size) {
  return word & 1 ? size - 1 - word / 2 % size : word / 2 % size;
}

void use(const std::string& path) {
  for (const bool recover : {false, true}) {
    try {
      open_and_read(path, "pack", {{"recover", recover}}, {.records = 200});
      summarize_pack(path, recover);
      check_pack(path);
    } catch (const Exception& exception) {
      if (exception.error().code->kind == ErrorKind::kStorage) std::abort();
    }
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const std::vector<uint8_t> packs[] = {sound_pack(4096), sound_pack(kDefaultPageBytes)};
  if (size < 2) return 0;
  const int way = data[0] % 4;
  std::vector<uint8_t> bytes = way < 2 ? packs[way] : std::vector<uint8_t>();
  const std::span<const uint8_t> input(data + 1, size - 1);
  if (way < 2) {
    change(bytes, input, 16, place_of);
  } else {
    bytes.assign(input.begin(), input.end());
  }
  if (way < 3) correct_checksums(bytes);
  use(file_of(bytes));
  return 0;
}
