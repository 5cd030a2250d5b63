// SPDX-License-Identifier: Apache-2.0
// Statistics of a pack's contents, for the report after packing and for `headrace info`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/formats/pack/pack_file.h"
#include "headrace/formats/pack/pack_table.h"
#include "headrace/sources/source.h"

namespace headrace {

struct PackShare {
  int64_t blobs = 0;
  uint64_t original_bytes = 0, stored_bytes = 0;
};

struct PackReason {
  std::string reason;
  int64_t blobs = 0;
  uint64_t bytes = 0;
  bool unusable = false;
};

struct UnusableRecord {
  int64_t record = 0;
  std::string key, field, reason;
};

struct PackSummary {
  int64_t records = 0, pages = 0, shards = 0;
  uint64_t file_bytes = 0;
  PackShare pictures;                       // encoded images and masks
  std::array<PackShare, kPackForms> forms;  // of those, by PackForm
  std::vector<PackReason> reasons;          // why images are stored unchanged, sorted by frequency
  std::vector<UnusableRecord> unusable;     // the first kMaxListed
  int64_t unusable_count = 0;
  uint64_t fingerprint = 0;
  std::string missing;  // what a recovered pack lacks

  static constexpr size_t kMaxListed = 1000;
  void add(const PackHeader& header, const PackTable& table);
  void sort_reasons();
};

// The same for the same records, classes and fields, however they are packed. `content`: the sum of
// record_mark().
uint64_t pack_fingerprint(const Schema& schema, const std::vector<std::string>& classes,
                          int64_t records, uint64_t content);

// The files of a pack in order (a single file, or the shards of a folder), and what a recovered
// pack lacks.
struct OpenedPack {
  std::vector<PackFile> files;
  std::string missing;
};
// Throws Exception HR0440..HR0445. `recover`: uses what is complete up to the first gap.
OpenedPack open_pack(const std::string& path, bool recover);
// Whether the path is a pack, judging by a few bytes.
bool is_pack(const std::string& path);
std::string shard_name(uint32_t shard);  // "shard-00007.hrpack"

// Throws the exceptions of open_pack().
PackSummary summarize_pack(const std::string& path, bool recover = false);
// Compares every page with the index. Throws Exception HR0443 at the first difference.
void check_pack(const std::string& path, const Progress& progress = {});

}  // namespace headrace
