// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/arrays/binary_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "headrace/storage/inflate.h"

namespace headrace {
namespace {

bool is_gzip(std::span<const uint8_t> begin) {
  return begin.size() >= 3 && begin[0] == 0x1f && begin[1] == 0x8b && begin[2] == 8;
}

}  // namespace

FilePart open_binary(const std::string& path) {
  Result<File> opened = File::open(path);
  if (!opened) throw Exception(std::move(opened.error()));
  const auto file = std::make_shared<const File>(std::move(*opened));
  std::array<uint8_t, 3> begin{};
  const auto some = static_cast<size_t>(std::min<uint64_t>(file->size(), begin.size()));
  if (Result<void> read = file->read(0, std::span(begin).first(some)); !read) {
    throw Exception(std::move(read.error()));
  }
  if (!is_gzip(std::span<const uint8_t>(begin).first(some))) return {.file = file};
  const auto memory = std::make_shared<Buffer>();
  Result<void> done = inflate_file(*file, 0, file->size(), DeflateWrap::kGzip, {}, *memory);
  if (!done) throw Exception(std::move(done.error()));
  return {.file = nullptr, .offset = 0, .count = 0, .memory = memory};
}

size_t peek_binary(const std::string& path, std::span<uint8_t> out) {
  std::array<uint8_t, 4096> begin{};
  const Result<size_t> read = read_prefix(path, begin);
  if (!read) return 0;
  const auto bytes = std::span<const uint8_t>(begin).first(*read);
  if (!is_gzip(bytes)) {
    const size_t count = std::min(out.size(), bytes.size());
    std::memcpy(out.data(), bytes.data(), count);
    return count;
  }
  Inflater inflater(DeflateWrap::kGzip);
  const Result<Inflater::Step> step = inflater.run(bytes, out);
  return step ? step->produced : 0;
}

}  // namespace headrace
