// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/tfrecord/tf_example.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

// Field numbers of the messages in the header.
constexpr uint32_t kFeatures = 1, kFeatureLists = 2, kMapEntry = 1, kName = 1, kValue = 2;
constexpr uint32_t kListValue = 1;

bool is_message(const ProtoReader& in, uint32_t field) {
  return in.field() == field && in.is(ProtoType::kBytes);
}

TfKind kind_of(const ProtoReader& in) {
  const bool known = in.is(ProtoType::kBytes) && in.field() >= 1 && in.field() <= 3;
  return known ? static_cast<TfKind>(in.field()) : TfKind::kNone;
}

}  // namespace

bool TfEntries::fail(const char* what, const uint8_t* place) {
  problem_ = {.what = what, .place = place};
  return false;
}

// Advances to the next map of the message. False at the end, too.
bool TfEntries::next_map() {
  while (outer_.next()) {
    is_list_ = is_message(outer_, kFeatureLists);
    if (!is_list_ && !is_message(outer_, kFeatures)) continue;
    map_bytes_ = outer_.bytes();
    map_ = ProtoReader(map_bytes_);
    return true;
  }
  return outer_.good() ? false : fail(outer_.problem(), bytes_.data() + outer_.offset());
}

bool TfEntries::read_entry(std::span<const uint8_t> entry, TfEntry& out) {
  out = {.name = {}, .value = entry.first(0), .is_list = is_list_};
  ProtoReader in(entry);
  bool has_value = false;
  while (in.next()) {
    if (is_message(in, kName)) out.name = in.text();
    if (!is_message(in, kValue)) continue;
    // protobuf would merge them, but no writer produces them.
    if (has_value) return fail("a feature with two lists of values", entry.data() + in.offset());
    has_value = true;
    out.value = in.bytes();
  }
  return in.good() || fail(in.problem(), entry.data() + in.offset());
}

bool TfEntries::next(TfEntry& out) {
  do {
    while (map_.next()) {
      if (is_message(map_, kMapEntry)) return read_entry(map_.bytes(), out);
    }
    if (!map_.good()) return fail(map_.problem(), map_bytes_.data() + map_.offset());
  } while (next_map());
  return false;
}

bool TfFeature::parse(std::span<const uint8_t> feature, TfProblem& problem) {
  *this = TfFeature();
  // In a oneof the last kind wins; consecutive lists of it are concatenated.
  ProtoReader in(feature);
  while (in.next()) {
    const TfKind kind = kind_of(in);
    if (kind == TfKind::kNone) continue;
    if (kind != kind_) {
      *this = TfFeature();
      kind_ = kind;
      lists_ = feature.subspan(in.offset());
    }
    if (!count_values(in.bytes(), problem)) return false;
  }
  if (!in.good()) problem = {.what = in.problem(), .place = feature.data() + in.offset()};
  return in.good();
}

bool TfFeature::count_values(std::span<const uint8_t> list, TfProblem& problem) {
  ProtoReader in(list);
  while (in.next()) {
    if (in.field() != kListValue) continue;
    const auto fail = [&](const char* what) {
      problem = {.what = what, .place = list.data() + in.offset()};
      return false;
    };
    const std::span<const uint8_t> bytes = in.bytes();
    const bool packed = in.is(ProtoType::kBytes);
    switch (kind_) {
      case TfKind::kNone:
        break;
      case TfKind::kBytes:
        if (!packed) break;
        if (count_++ == 0) first_ = bytes;
        total_ += bytes.size();
        break;
      case TfKind::kFloat:
        if (packed && bytes.size() % 4 != 0)
          return fail("packed floats whose size is not a multiple of 4");
        if (packed || in.is(ProtoType::kFixed32)) count_ += static_cast<int64_t>(bytes.size() / 4);
        break;
      case TfKind::kInt64:
        if (packed) {
          VarintReader numbers(bytes);
          for (; !numbers.at_end(); ++count_) numbers.next();
          if (!numbers.good()) return fail("packed integers that are truncated or too long");
        } else if (in.is(ProtoType::kVarint)) {
          ++count_;
        }
    }
  }
  if (!in.good()) problem = {.what = in.problem(), .place = list.data() + in.offset()};
  return in.good();
}

// Calls found(reader) for each field 1 of the lists. REQUIRES: they were counted before.
template <class Found>
void TfFeature::each_value(const Found& found) const {
  ProtoReader lists(lists_);
  while (lists.next()) {
    if (kind_of(lists) != kind_) continue;
    ProtoReader in(lists.bytes());
    while (in.next()) {
      if (in.field() == kListValue && !found(in)) return;
    }
  }
}

void TfFeature::copy_numbers(uint8_t* out) const {
  each_value([&](const ProtoReader& in) {
    const std::span<const uint8_t> bytes = in.bytes();
    if (kind_ == TfKind::kFloat && (in.is(ProtoType::kBytes) || in.is(ProtoType::kFixed32))) {
      if (!bytes.empty()) std::memcpy(out, bytes.data(), bytes.size());
      out += bytes.size();
    } else if (kind_ == TfKind::kInt64 && in.is(ProtoType::kBytes)) {
      VarintReader numbers(bytes);
      for (; !numbers.at_end(); out += sizeof(uint64_t)) {
        const uint64_t value = numbers.next();
        std::memcpy(out, &value, sizeof value);
      }
    } else if (kind_ == TfKind::kInt64 && in.is(ProtoType::kVarint)) {
      const uint64_t value = in.number();
      std::memcpy(out, &value, sizeof value);
      out += sizeof value;
    }
    return true;
  });
}

void TfFeature::copy_bytes(uint8_t* out) const {
  each_value([&](const ProtoReader& in) {
    const std::span<const uint8_t> bytes = in.bytes();
    if (in.is(ProtoType::kBytes) && !bytes.empty()) {
      std::memcpy(out, bytes.data(), bytes.size());
      out += bytes.size();
    }
    return true;
  });
}

int64_t TfFeature::first_number() const {
  uint64_t value = 0;
  each_value([&](const ProtoReader& in) {
    if (in.is(ProtoType::kVarint)) {
      value = in.number();
      return false;
    }
    VarintReader numbers(in.bytes());
    if (!in.is(ProtoType::kBytes) || numbers.at_end()) return true;
    value = numbers.next();
    return false;
  });
  return static_cast<int64_t>(value);
}

}  // namespace headrace
