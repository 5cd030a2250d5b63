// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/value_parts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "headrace/sources/source_around.h"

namespace headrace {
namespace {

constexpr int64_t kAtOnce = 256;

std::vector<int64_t> lengths_by_reading(const Source& source, size_t field,
                                        const Progress& progress) {
  const int64_t size = source.size();
  const size_t item = size_of(source.schema()[field].dtype);
  std::vector<bool> wanted(source.schema().size());
  wanted[field] = true;
  std::vector<int64_t> lengths, indices;
  lengths.reserve(static_cast<size_t>(size));
  std::vector<RecordData> records(kAtOnce);
  for (int64_t first = 0; first < size; first += kAtOnce) {
    if (progress) progress(first, size);
    indices.resize(static_cast<size_t>(std::min(kAtOnce, size - first)));
    std::iota(indices.begin(), indices.end(), first);
    const auto read = std::span(records).first(indices.size());
    source.read(indices, wanted, read);
    for (RecordData& record : read) {
      if (!record.result) throw Exception(record.result.error());
      lengths.push_back(static_cast<int64_t>(record.fields[field].bytes.size() / item));
    }
  }
  return lengths;
}

}  // namespace

const ValueParts* parts_of(const Source& source) {
  const Source* inner = &source;
  while (const auto* around = dynamic_cast<const SourceAround*>(inner))
    inner = around->inner().get();
  return dynamic_cast<const ValueParts*>(inner);
}

bool has_parts(const Source& source) {
  return std::ranges::all_of(source.origins(),
                             [](const Source* origin) { return parts_of(*origin) != nullptr; });
}

std::vector<int64_t> value_lengths(const Source& source, size_t field, const Progress& progress) {
  if (const ValueParts* parts = parts_of(source)) return parts->value_lengths(field);
  if (!has_parts(source)) return lengths_by_reading(source, field, progress);
  // By origin: source and field of the values, since views and combinations read from other
  // sources.
  std::map<std::pair<const Source*, size_t>, std::vector<int64_t>> known;
  std::vector<int64_t> lengths(static_cast<size_t>(source.size()));
  for (int64_t i = 0; i < source.size(); ++i) {
    const Origin origin = source.origin(i, field);
    const ValueParts* parts = parts_of(*origin.source);
    if (!parts) return lengths_by_reading(source, field, progress);
    const auto [found, added] = known.try_emplace({origin.source, origin.field});
    if (added) found->second = parts->value_lengths(origin.field);
    lengths[static_cast<size_t>(i)] = found->second[static_cast<size_t>(origin.index)];
  }
  return lengths;
}

}  // namespace headrace
