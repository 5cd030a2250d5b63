// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/kept_headers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headrace/base/random.h"
#include "headrace/sources/files_read.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {
namespace {

constexpr char kMagicOfHeaders[8] = {'H', 'R', 'H', 'E', 'A', 'D', 'S', '1'};
constexpr int64_t kLooks = 256;  // files, spread over the records

struct Entry {
  std::string name;
  std::array<uint64_t, 2> key;  // which source and field, and its files as they are
};

bool is_opened(const Source& source) {
  return std::ranges::all_of(source.origins(), [](const Source* origin) {
    return origin->identity() != origin->Source::identity();
  });
}

std::optional<Entry> entry_of(const Source& source, size_t field) {
  if (!is_opened(source) || source.size() == 0) return std::nullopt;
  const std::string text = source.schema()[field].name + "\n" + source.identity();
  uint64_t key = hash_name(text), files = mix64(hash_name("files of headers"), key);
  const int64_t looks = std::min(source.size(), kLooks);
  for (int64_t i = 0; i < looks; ++i) {
    const int64_t record = looks == 1 ? 0 : (source.size() - 1) * i / (looks - 1);
    files = mix64(files, digest_of_file(file_of(source, record, field)).value_or(0));
  }
  key = mix64(key, source.fingerprint());
  char name[40];
  std::snprintf(name, sizeof name, "headers-%016llx", static_cast<unsigned long long>(key));
  return Entry{name, {key, files}};
}

uint64_t checksum(std::span<const int64_t> numbers) {
  uint64_t sum = numbers.size();
  for (const int64_t number : numbers) sum = mix64(sum, static_cast<uint64_t>(number));
  return sum;
}

struct Head {
  char magic[sizeof kMagicOfHeaders];
  uint64_t key[2], numbers, checksum;
};

std::span<const uint8_t> bytes_of(const auto* data, size_t count) {
  return {reinterpret_cast<const uint8_t*>(data), count * sizeof *data};
}

}  // namespace

std::optional<std::vector<int64_t>> kept_headers(const Source& source, size_t field,
                                                 size_t per_record) {
  const auto entry = entry_of(source, field);
  Buffer bytes;
  if (!entry || !CacheDirectory::of_user().read(entry->name, bytes)) return std::nullopt;
  const size_t count = static_cast<size_t>(source.size()) * per_record;
  Head head;
  if (bytes.size() != sizeof head + count * sizeof(int64_t)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  std::vector<int64_t> numbers(count);
  std::memcpy(numbers.data(), bytes.data() + sizeof head, count * sizeof(int64_t));
  const bool good = std::ranges::equal(head.magic, kMagicOfHeaders) &&
                    std::ranges::equal(head.key, entry->key) && head.numbers == count &&
                    head.checksum == checksum(numbers);
  if (!good) return std::nullopt;
  return numbers;
}

void keep_headers(const Source& source, size_t field, std::span<const int64_t> numbers) {
  const auto entry = entry_of(source, field);
  if (!entry) return;
  Head head{.magic = {},
            .key = {entry->key[0], entry->key[1]},
            .numbers = numbers.size(),
            .checksum = checksum(numbers)};
  std::ranges::copy(kMagicOfHeaders, head.magic);
  const std::span<const uint8_t> parts[] = {bytes_of(&head, 1),
                                            bytes_of(numbers.data(), numbers.size())};
  const CacheDirectory cache = CacheDirectory::of_user();
  cache.make();
  cache.write(entry->name, parts);
}

}  // namespace headrace
