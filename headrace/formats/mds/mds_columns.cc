// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/mds/mds_columns.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "headrace/base/parameters.h"
#include "headrace/sources/field_names.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kBadSample{
    "HR0488", ErrorKind::kData, "damaged MDS shard",
    "A shard contradicts itself or index.json: its table of samples, the lengths in a sample, or "
    "a value that does not match its column's encoding. Only the affected samples are bad, and "
    "on_error decides what happens. Copy the shard again."};

// Makes a field name from a column's name: a unique identifier.
std::string field_name(const std::string& column, FieldNames& taken) {
  std::string name;
  for (const char c : column) {
    const auto byte = static_cast<unsigned char>(c);
    name += byte >= 128 || std::isalnum(byte) ? c : '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name.insert(0, "_");
  if (name == "id" || name == "key" || name == "valid" || taken.has(name)) name += '_';
  return taken.take(name);
}

}  // namespace

Error bad_sample(std::string what, uint64_t offset) {
  return {.code = &kBadSample,
          .what = std::move(what),
          .where = Where{.offset = static_cast<int64_t>(offset)}};
}

Result<int64_t> MdsEncoding::integer(std::span<const uint8_t>) const {
  return bad_sample("the value is not an integer");
}

MdsColumns::MdsColumns(std::vector<MdsColumn> columns, const std::vector<std::string>& chosen)
    : columns_(std::move(columns)) {
  std::vector<std::string> names;
  FieldNames taken;
  for (const MdsColumn& column : columns_) names.push_back(column.name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  for (const std::string& name : chosen.empty() ? names : chosen) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      const std::string_view near = nearest_name(name, candidates);
      mds_not_read("there is no column \"" + name + "\"",
                   near.empty() ? "the columns are " + quoted_list(names, 20)
                                : "did you mean \"" + std::string(near) + "\"?");
    }
    fields_.push_back(
        {static_cast<size_t>(found - names.begin()), field_name(name, taken), nullptr});
  }
}

bool MdsColumns::begin(std::span<const uint8_t> sample) {
  std::vector<Place> places(columns_.size());
  const bool sound =
      sample.size() >= head_bytes() && place_values(sample, sample.size(), places).has_value();
  for (Chosen& chosen : fields_) {
    const MdsColumn& column = columns_[chosen.column];
    const Place place = sound ? places[chosen.column] : Place{};
    std::string why;
    chosen.encoding =
        mds_encoding(column, chosen.name, sample.subspan(place.offset, place.bytes), why);
    if (!chosen.encoding) {
      std::vector<std::string> others;
      for (const Chosen& other : fields_) {
        if (&other != &chosen) others.push_back(columns_[other.column].name);
      }
      mds_not_read("the column \"" + column.name + "\" contains " + why,
                   others.empty() ? "rewrite the dataset, with another encoding"
                                  : "select the other columns with columns=");
    }
  }
  return sound;
}

Schema MdsColumns::schema() const {
  Schema out;
  for (const Chosen& chosen : fields_) out.push_back(chosen.encoding->field());
  return out;
}

size_t MdsColumns::head_bytes() const {
  return sizeof(uint32_t) * static_cast<size_t>(std::ranges::count(columns_, 0, &MdsColumn::bytes));
}

Result<void> MdsColumns::place_values(std::span<const uint8_t> head, uint64_t sample_bytes,
                                      std::vector<Place>& out) const {
  uint64_t at = head_bytes();
  out.clear();
  for (const MdsColumn& column : columns_) {
    uint64_t bytes = column.bytes;
    if (bytes == 0) {
      uint32_t length;
      std::memcpy(&length, head.data(), sizeof length);
      head = head.subspan(sizeof length);
      bytes = length;
    }
    if (at > sample_bytes || bytes > sample_bytes - at) {
      return bad_sample("the column \"" + column.name + "\" of " +
                        with_commas(static_cast<int64_t>(bytes)) +
                        " bytes extends beyond its sample, which has " +
                        with_commas(static_cast<int64_t>(sample_bytes)));
    }
    out.push_back({at, bytes});
    at += bytes;
  }
  if (at == sample_bytes) return {};
  return bad_sample("the columns take " + with_commas(static_cast<int64_t>(at)) +
                    " of the sample's " + with_commas(static_cast<int64_t>(sample_bytes)) +
                    " bytes");
}

Result<void> MdsColumns::parse(std::span<const uint8_t> sample, const std::vector<bool>& wanted,
                               RecordData& out) const {
  thread_local std::vector<Place> places;
  if (sample.size() < head_bytes()) {
    return bad_sample("the sample has " + with_commas(static_cast<int64_t>(sample.size())) +
                      " bytes");
  }
  if (Result<void> placed = place_values(sample, sample.size(), places); !placed) return placed;
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (!wanted[i]) continue;
    const Place& place = places[fields_[i].column];
    Result<void> parsed = fields_[i].encoding->parse(sample.subspan(place.offset, place.bytes),
                                                     out.fields[i], out.owned[1 + i]);
    if (parsed) continue;
    parsed.error().what =
        "the column \"" + columns_[fields_[i].column].name + "\": " + parsed.error().what;
    parsed.error().where.offset = static_cast<int64_t>(place.offset);
    return parsed;
  }
  return {};
}

Result<int64_t> MdsColumns::integer(size_t field, uint64_t bytes, const Read& read) const {
  constexpr uint64_t kMax = 64;  // digits of a number that is stored as text
  std::vector<uint8_t> head(head_bytes());
  if (bytes < head.size()) return bad_sample("the sample is too short");
  if (Result<void> done = read(0, head); !done) return done.error();
  std::vector<Place> places;
  if (Result<void> placed = place_values(head, bytes, places); !placed) return placed.error();
  const Place& place = places[fields_[field].column];
  if (place.bytes > kMax) return bad_sample("the value is not an integer", place.offset);
  std::vector<uint8_t> value(place.bytes);
  if (Result<void> done = read(place.offset, value); !done) return done.error();
  return fields_[field].encoding->integer(value);
}

}  // namespace headrace
