// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "headrace/base/utf8.h"
#include "headrace/codecs/codec.h"
#include "headrace/formats/tfrecord/tf_fields.h"

namespace headrace {
namespace {

// Human-readable text: without control characters other than white space.
bool is_readable(std::span<const uint8_t> bytes) {
  const auto control = [](uint8_t c) { return (c < 32 && !(c >= 9 && c <= 13)) || c == 127; };
  return std::none_of(bytes.begin(), bytes.end(), control) && is_utf8(bytes);
}

void note(const TfFeature& feature, TfSeen& seen) {
  if (feature.count() > 0) seen.kinds[static_cast<size_t>(feature.kind())] = true;
  seen.min_count = std::min(seen.min_count, feature.count());
  seen.max_count = std::max(seen.max_count, feature.count());
  if (feature.kind() != TfKind::kBytes || feature.count() == 0) return;
  const std::span<const uint8_t> bytes = feature.first_bytes();
  ++seen.byte_values;
  seen.pictures += begins_like_image(bytes);
  seen.text = seen.text && is_readable(bytes);
}

}  // namespace

bool TfSample::add(std::span<const uint8_t> message) {
  TfEntries entries(message);
  TfEntry entry;
  std::map<Key, std::span<const uint8_t>> last;
  while (entries.next(entry)) {
    const auto* name = reinterpret_cast<const uint8_t*>(entry.name.data());
    if (!is_utf8({name, entry.name.size()})) return false;
    last[{std::string(entry.name), entry.is_list}] = entry.value;
  }
  if (entries.problem().what || last.empty()) return false;
  std::vector<std::pair<const Key*, TfFeature>> found;
  for (const auto& [key, value] : last) {
    TfProblem problem;
    TfFeature feature;
    if (!key.second) {
      if (!feature.parse(value, problem)) return false;
      found.emplace_back(&key, feature);
      continue;
    }
    ProtoReader steps(value);
    while (steps.next()) {
      if (steps.field() != 1 || !steps.is(ProtoType::kBytes)) continue;
      if (!feature.parse(steps.bytes(), problem)) return false;
      found.emplace_back(&key, feature);
    }
    if (!steps.good()) return false;
  }
  for (const auto& [key, value] : last) ++features_[key].records;
  for (const auto& [key, feature] : found) note(feature, features_[*key]);
  ++examples_;
  return true;
}

}  // namespace headrace
