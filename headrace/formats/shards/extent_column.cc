// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/shards/extent_column.h"

#include <algorithm>
#include <optional>

#include "headrace/base/cores.h"
#include "headrace/sources/in_order.h"

namespace headrace {
namespace {

constexpr int64_t kTogether = 1024;  // records claimed by a thread at a time
using Values = std::vector<int64_t>;

Values read_chunk(const FileSet& files, const ContainerIndex& index, const ReadInteger& read,
                  int64_t chunk) {
  const Extents& records = index.records;
  Values out;
  std::optional<FileWindow> window;
  size_t open = SIZE_MAX;
  const int64_t end = std::min(records.size(), (chunk + 1) * kTogether);
  for (int64_t i = chunk * kTogether; i < end; ++i) {
    if (index.is_damaged(i)) {
      out.push_back(-1);
      continue;
    }
    const Extent extent = records[i];
    if (extent.file != open) {
      open = extent.file;
      window.emplace(files.identity(open).size,
                     [&files, open](uint64_t offset, std::span<uint8_t> bytes) {
                       return files.read(open, offset, bytes);
                     });
    }
    Result<int64_t> value = read(*window, i, extent);
    if (!value && value.error().code->kind == ErrorKind::kStorage) {
      Error& error = value.error();
      error.where.file = files.shown(extent.file);
      error.where.record = i;
      throw Exception(std::move(error));
    }
    out.push_back(value ? *value : -1);
  }
  return out;
}

}  // namespace

std::vector<int64_t> column_of(const FileSet& files, const ContainerIndex& index,
                               const ReadInteger& read) {
  Values column;
  column.reserve(static_cast<size_t>(index.records.size()));
  const int64_t chunks = (index.records.size() + kTogether - 1) / kTogether;
  const auto work = [&](int64_t chunk) { return read_chunk(files, index, read, chunk); };
  each_in_order(0, chunks, allowed_cores().count(), work, [&](const Values& values) {
    column.insert(column.end(), values.begin(), values.end());
  });
  return column;
}

}  // namespace headrace
