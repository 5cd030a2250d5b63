// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_summary.h"

#include <algorithm>

#include "headrace/sources/fingerprint.h"

namespace headrace {

void PackSummary::add(const PackHeader& header, const PackTable& table) {
  records += static_cast<int64_t>(table.records());
  const auto reason_of = [&](const BlobFacts& facts) -> PackReason& {
    const std::string& text = table.reasons[facts.reason - 1];
    auto found = std::find_if(reasons.begin(), reasons.end(),
                              [&](const PackReason& known) { return known.reason == text; });
    if (found == reasons.end()) found = reasons.insert(found, {.reason = text});
    return *found;
  };
  for (size_t i = 0; i < table.fields.size(); ++i) {
    if (!header.schema[i].encoded) continue;
    for (size_t record = 0; record < table.records(); ++record) {
      const BlobFacts facts = table.fields[i].blob(record);
      const int form = std::min<int>(facts.form & kFormBits, kPackForms - 1);
      for (PackShare* share : {&pictures, &forms[static_cast<size_t>(form)]}) {
        ++share->blobs;
        share->original_bytes += facts.original_bytes;
        share->stored_bytes += facts.stored_bytes;
      }
      const bool is_unusable = facts.form & kUnusableBit;
      if (facts.reason > 0) {
        PackReason& reason = reason_of(facts);
        ++reason.blobs;
        reason.bytes += facts.original_bytes;
        reason.unusable |= is_unusable;
      }
      if (!is_unusable) continue;
      ++unusable_count;
      if (unusable.size() >= kMaxListed) continue;
      unusable.push_back({.record = static_cast<int64_t>(header.first_record + record),
                          .key = std::string(table.keys[static_cast<int64_t>(record)]),
                          .field = header.schema[i].name,
                          .reason = facts.reason > 0 ? table.reasons[facts.reason - 1] : ""});
    }
  }
}

void PackSummary::sort_reasons() {
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const PackReason& a, const PackReason& b) { return a.blobs > b.blobs; });
}

uint64_t pack_fingerprint(const Schema& schema, const std::vector<std::string>& classes,
                          int64_t records, uint64_t content) {
  Fingerprint print;
  print.add("pack");
  for (const Field& field : schema) {
    print.add(field.name);
    print.add(static_cast<uint64_t>(field.kind));
    print.add(name_of(field.dtype));
    for (int64_t size : field.shape) print.add(static_cast<uint64_t>(size));
  }
  for (const std::string& name : classes) print.add(name);
  print.add(static_cast<uint64_t>(records));
  print.add(content);
  return print.value();
}

PackSummary summarize_pack(const std::string& path, bool recover) {
  const OpenedPack pack = open_pack(path, recover);
  const std::vector<PackFile>& files = pack.files;
  PackSummary summary;
  uint64_t content = 0;
  for (const PackFile& file : files) {
    Result<PackTable> table = file.table();
    if (!table) throw Exception(table.error());
    summary.add(file.header(), *table);
    summary.file_bytes += file.file_bytes();
    summary.pages += static_cast<int64_t>(file.pages().size());
    content += file.content();
  }
  summary.sort_reasons();
  summary.shards = static_cast<int64_t>(files.size());
  summary.missing = pack.missing;
  const PackHeader& header = files.front().header();
  summary.fingerprint = pack_fingerprint(header.schema, header.classes, summary.records, content);
  return summary;
}

void check_pack(const std::string& path, const Progress& progress) {
  const std::vector<PackFile> files = open_pack(path, false).files;
  int64_t total = 0, done = 0;
  for (const PackFile& file : files) total += static_cast<int64_t>(file.pages().size());
  for (const PackFile& file : files) {
    for (size_t page = 0; page < file.pages().size(); ++page) {
      if (Result<void> same = file.check_page(page); !same) throw Exception(same.error());
      if (progress) progress(++done, total);
    }
  }
}

}  // namespace headrace
