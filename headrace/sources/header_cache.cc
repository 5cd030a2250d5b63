// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/header_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "headrace/base/number_text.h"
#include "headrace/base/random.h"
#include "headrace/sources/files_read.h"
#include "headrace/storage/cache_directory.h"

namespace headrace {
namespace {

constexpr char kMagicOfHeaders[8] = {'H', 'R', 'H', 'E', 'A', 'D', 'S', '1'};
constexpr int64_t kLooks = 256;  // number of sampled files, spread over the records

bool is_opened(const Source& source) {
  return std::ranges::all_of(source.origins(), [](const Source* origin) {
    return origin->identity() != origin->Source::identity();
  });
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

HeaderCache::HeaderCache(const Source& source, size_t field) {
  if (!is_opened(source) || source.size() == 0) return;
  const std::string text = source.schema()[field].name + "\n" + source.identity();
  uint64_t key = hash_name(text), files = mix64(hash_name("files of headers"), key);
  const int64_t looks = std::min(source.size(), kLooks);
  for (int64_t i = 0; i < looks; ++i) {
    const int64_t record = looks == 1 ? 0 : (source.size() - 1) * i / (looks - 1);
    files = mix64(files, digest_of_file(file_of(source, record, field)).value_or(0));
  }
  key = mix64(key, source.fingerprint());
  name_ = "headers-" + hex_text(key);
  key_ = {key, files};
}

std::optional<std::vector<int64_t>> HeaderCache::read(size_t count) const {
  Buffer bytes;
  if (name_.empty() || !CacheDirectory::of_user().read(name_, bytes)) return std::nullopt;
  Head head;
  if (bytes.size() != sizeof head + count * sizeof(int64_t)) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  std::vector<int64_t> numbers(count);
  std::memcpy(numbers.data(), bytes.data() + sizeof head, count * sizeof(int64_t));
  const bool good = std::ranges::equal(head.magic, kMagicOfHeaders) &&
                    std::ranges::equal(head.key, key_) && head.numbers == count &&
                    head.checksum == checksum(numbers);
  if (!good) return std::nullopt;
  return numbers;
}

void HeaderCache::write(std::span<const int64_t> numbers) const {
  if (name_.empty()) return;
  Head head{.magic = {},
            .key = {key_[0], key_[1]},
            .numbers = numbers.size(),
            .checksum = checksum(numbers)};
  std::ranges::copy(kMagicOfHeaders, head.magic);
  const std::span<const uint8_t> parts[] = {bytes_of(&head, 1),
                                            bytes_of(numbers.data(), numbers.size())};
  const CacheDirectory cache = CacheDirectory::of_user();
  cache.make();
  cache.write(name_, parts);
}

}  // namespace headrace
