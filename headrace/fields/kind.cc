// SPDX-License-Identifier: Apache-2.0
#include "headrace/fields/kind.h"

#include <array>
#include <cassert>

#include "headrace/base/registry.h"

namespace headrace {
namespace {

using Kinds = std::array<const KindRecord*, 256>;

// Indexed by number; made when the first kind is requested, which is after the libraries were
// loaded.
const Kinds& kinds() {
  static const Kinds kinds = [] {
    Kinds out{};
    for (const KindRecord* record : Registry<KindRecord>::all()) {
      const KindRecord*& place = out[static_cast<size_t>(record->kind)];
      assert(!place && "two kinds with the same number");
      place = record;
    }
    return out;
  }();
  return kinds;
}

}  // namespace

const KindRecord* find_kind(FieldKind kind) { return kinds()[static_cast<size_t>(kind)]; }

const KindRecord* find_kind(std::string_view name) { return Registry<KindRecord>::find(name); }

const KindRecord& record_of(FieldKind kind) {
  const KindRecord* const record = find_kind(kind);
  assert(record);
  return *record;
}

std::vector<const KindRecord*> all_kinds() {
  std::vector<const KindRecord*> out;
  for (const KindRecord* record : kinds()) {
    if (record) out.push_back(record);
  }
  return out;
}

bool follows(const FieldState& field) {
  const KindRecord& kind = record_of(field.kind);
  return kind.follow && (!kind.wants || kind.wants(field).empty());
}

}  // namespace headrace
