// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_table.h"

#include <algorithm>

#include "headrace/base/byte_stream.h"
#include "headrace/base/text.h"
#include "headrace/sources/fingerprint.h"

namespace headrace {
namespace {

constexpr size_t kMaxReasons = 255, kLongestReason = 1000;
constexpr std::string_view kOtherReasons = "other reasons";

template <class Number>
void take(ByteReader& in, uint64_t count, std::vector<Number>& out) {
  append_numbers(in.bytes(count * sizeof(Number)), out);
}

template <class Value>
void append_all(std::vector<Value>& to, const std::vector<Value>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::vector<uint32_t> key_sizes(const NameList& keys) {
  std::vector<uint32_t> sizes(static_cast<size_t>(keys.size()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    sizes[i] = static_cast<uint32_t>(keys[static_cast<int64_t>(i)].size());
  }
  return sizes;
}

}  // namespace

void TableField::add(const BlobFacts& facts) {
  stored_bytes.push_back(facts.stored_bytes);
  stored_sum.push_back(facts.stored_sum);
  original_bytes.push_back(facts.original_bytes);
  original_sum.push_back(facts.original_sum);
  form.push_back(facts.form);
  reason.push_back(facts.reason);
}

PackTable::PackTable(const Schema& schema) : fields(schema.size()) {
  for (size_t i = 0; i < schema.size(); ++i) fields[i].width = column_bytes(schema[i]);
}

uint64_t PackTable::blob_bytes(size_t record) const {
  uint64_t bytes = 0;
  for (const TableField& field : fields) {
    if (field.width == 0) bytes += aligned(field.stored_bytes[record], kBlobAlignment);
  }
  return bytes;
}

uint8_t PackTable::reason_number(std::string_view reason) {
  if (reason.empty()) return 0;
  reason = reason.substr(0, kLongestReason);
  const auto find = [&] { return std::find(reasons.begin(), reasons.end(), reason); };
  if (find() == reasons.end() && reasons.size() + 1 >= kMaxReasons) reason = kOtherReasons;
  const size_t at = find() - reasons.begin();
  if (at == reasons.size()) reasons.emplace_back(reason);
  return static_cast<uint8_t>(at + 1);
}

void PackTable::append(const PackTable& other) {
  std::vector<uint8_t> renamed = {0};
  for (const std::string& reason : other.reasons) renamed.push_back(reason_number(reason));
  for (size_t i = 0; i < fields.size(); ++i) {
    TableField& to = fields[i];
    const TableField& from = other.fields[i];
    append_all(to.values, from.values);
    append_all(to.stored_bytes, from.stored_bytes);
    append_all(to.stored_sum, from.stored_sum);
    append_all(to.original_bytes, from.original_bytes);
    append_all(to.original_sum, from.original_sum);
    append_all(to.form, from.form);
    for (uint8_t reason : from.reason) to.reason.push_back(renamed[reason]);
  }
  for (int64_t i = 0; i < other.keys.size(); ++i) keys.add(other.keys[i]);
}

void PackTable::clear() {
  for (TableField& field : fields) {
    TableField empty;
    empty.width = field.width;
    field = std::move(empty);
  }
  keys.clear();
  reasons.clear();
}

std::vector<uint8_t> bytes_from_reasons(const std::vector<std::string>& reasons) {
  ByteWriter out;
  out.number(static_cast<uint16_t>(reasons.size()));
  for (const std::string& reason : reasons) {
    out.number(static_cast<uint16_t>(reason.size()));
    out.bytes(reason);
  }
  return std::move(out.out);
}

std::optional<std::vector<std::string>> reasons_from_bytes(std::span<const uint8_t> bytes) {
  ByteReader in(bytes);
  std::vector<std::string> reasons;
  const auto count = in.number<uint16_t>();
  if (count > kMaxReasons) return {};
  for (uint16_t i = 0; i < count; ++i) reasons.emplace_back(in.text(in.number<uint16_t>()));
  if (!in.good()) return {};
  return reasons;
}

std::optional<NameList> keys_from_bytes(std::span<const uint8_t> sizes,
                                        std::span<const uint8_t> letters) {
  NameList keys;
  keys.reserve(static_cast<int64_t>(sizes.size() / sizeof(uint32_t)), letters.size());
  ByteReader size_of_each(sizes), all(letters);
  while (size_of_each.left() > 0) {
    const std::string_view key = all.text(size_of_each.number<uint32_t>());
    if (!all.good() || !size_of_each.good()) return {};
    keys.add(key);
  }
  if (all.left() > 0) return {};
  return keys;
}

void for_each_section(
    const PackTable& table,
    const std::function<void(SectionTag, uint32_t, std::span<const uint8_t>)>& put) {
  for (size_t i = 0; i < table.fields.size(); ++i) {
    const TableField& field = table.fields[i];
    const auto number = static_cast<uint32_t>(i);
    if (field.width > 0) {
      put(SectionTag::kColumn, number, field.values);
      continue;
    }
    put(SectionTag::kStoredBytes, number, raw_bytes(field.stored_bytes));
    put(SectionTag::kStoredSum, number, raw_bytes(field.stored_sum));
    put(SectionTag::kOriginalBytes, number, raw_bytes(field.original_bytes));
    put(SectionTag::kOriginalSum, number, raw_bytes(field.original_sum));
    put(SectionTag::kForm, number, field.form);
    put(SectionTag::kReason, number, field.reason);
  }
  const std::vector<uint32_t> sizes = key_sizes(table.keys);
  put(SectionTag::kKeyBytes, 0, raw_bytes(sizes));
  const std::string& letters = table.keys.bytes();
  put(SectionTag::kKeys, 0, bytes_from_text(letters));
  put(SectionTag::kReasons, 0, bytes_from_reasons(table.reasons));
}

std::vector<uint8_t> bytes_from_table(const PackTable& table) {
  ByteWriter out;
  for_each_section(table,
                   [&](SectionTag, uint32_t, std::span<const uint8_t> bytes) { out.bytes(bytes); });
  return std::move(out.out);
}

std::optional<PackTable> table_from_bytes(std::span<const uint8_t> bytes, const Schema& schema,
                                          uint32_t records) {
  PackTable table(schema);
  ByteReader in(bytes);
  for (TableField& field : table.fields) {
    if (field.width > 0) {
      take(in, uint64_t{records} * field.width, field.values);
      continue;
    }
    take(in, records, field.stored_bytes);
    take(in, records, field.stored_sum);
    take(in, records, field.original_bytes);
    take(in, records, field.original_sum);
    take(in, records, field.form);
    take(in, records, field.reason);
  }
  const std::span<const uint8_t> sizes = in.bytes(uint64_t{records} * sizeof(uint32_t));
  uint64_t letters = 0;
  for (ByteReader each(sizes); each.left() > 0;) letters += each.number<uint32_t>();
  std::optional<NameList> keys = keys_from_bytes(sizes, in.bytes(letters));
  if (!in.good() || !keys) return {};
  table.keys = std::move(*keys);
  std::optional<std::vector<std::string>> reasons = reasons_from_bytes(in.bytes(in.left()));
  if (!reasons) return {};
  table.reasons = std::move(*reasons);
  for (const TableField& field : table.fields) {
    for (uint8_t reason : field.reason) {
      if (reason > table.reasons.size()) return {};
    }
  }
  return table;
}

uint64_t record_mark(const PackTable& table, size_t record, uint64_t place) {
  Fingerprint mark;
  mark.add(place);
  mark.add(table.keys[static_cast<int64_t>(record)]);
  for (const TableField& field : table.fields) {
    if (field.width > 0) {
      mark.add(text_from_bytes(std::span(field.values).subspan(record * field.width, field.width)));
    } else {
      mark.add(uint64_t{field.original_bytes[record]} << 32 | field.original_sum[record]);
    }
  }
  return mark.value();
}

}  // namespace headrace
