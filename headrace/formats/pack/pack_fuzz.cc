// SPDX-License-Identifier: Apache-2.0
// A pack as hostile input: opened both ways, all of it read, its pages compared with its index.
//
// The input changes a sound pack (which one, and how, stands in its first bytes), and checksums are
// made right again, so that the fuzzer gets behind them; or it is a pack itself.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "headrace/formats/columns.h"
#include "headrace/formats/pack/pack.h"
#include "headrace/formats/pack/pack_test_damage.h"

namespace headrace {
namespace {

constexpr int kRecords = 12;

// Fields of every storage: text, column, wide blobs; and several pages.
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

// {u16 place, from the begin or the end; u8 count; bytes}, again and again.
void apply(std::span<const uint8_t> changes, std::vector<uint8_t>& bytes) {
  while (changes.size() > 3) {
    const uint64_t place = number_at<uint16_t>(changes, 0);
    const size_t count = std::min<size_t>(changes[2] % 16 + 1, changes.size() - 3);
    const size_t at =
        place & 1 ? bytes.size() - 1 - place / 2 % bytes.size() : place / 2 % bytes.size();
    for (size_t i = 0; i < count && at + i < bytes.size(); ++i) bytes[at + i] = changes[3 + i];
    changes = changes.subspan(3 + count);
  }
}

void read_all(const Source& source) {
  const std::vector<bool> all(source.schema().size(), true);
  for (int64_t i = 0; i < std::min<int64_t>(source.size(), 200); ++i) {
    RecordData data;
    source.read({&i, 1}, all, {&data, 1});
    size_t sum = source.key(i).size();
    for (const FieldData& field : data.fields) {
      for (uint8_t byte : field.bytes) sum += byte;
    }
    if (sum == SIZE_MAX) std::abort();  // so that the bytes are really looked at
  }
  (void)source.integer_column("label");
  (void)source.description();
}

void use(const std::string& path) {
  for (const bool recover : {false, true}) {
    try {
      read_all(*open_source(path, {{"format", std::string("pack")}, {"recover", recover}}));
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
  static const int descriptor = ::memfd_create("pack", 0);
  if (size < 2) return 0;
  const int way = data[0] % 4;
  std::vector<uint8_t> bytes = way < 2 ? packs[way] : std::vector<uint8_t>();
  const std::span<const uint8_t> input(data + 1, size - 1);
  if (way < 2) {
    apply(input, bytes);
  } else {
    bytes.assign(input.begin(), input.end());
  }
  if (way < 3) correct_checksums(bytes);
  if (::ftruncate(descriptor, 0) != 0 ||
      ::pwrite(descriptor, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  use("/proc/self/fd/" + std::to_string(descriptor));
  return 0;
}
