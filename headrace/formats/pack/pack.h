// SPDX-License-Identifier: Apache-2.0
// Packing writes one or several sources to a single file that reads fast; unpacking restores the
// files byte for byte. open_source() opens packs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/codecs/image/jpeg/packed/packed_jpeg.h"
#include "headrace/formats/format.h"
#include "headrace/formats/pack/pack_summary.h"
#include "headrace/sources/source.h"

namespace headrace {

struct PackOptions {
  std::optional<PackLevel> level = PackLevel::kFast;  // empty: values are stored unchanged
  int shards = 1;                                     // more than one: `out` is a folder
  std::optional<int> only;                            // write only this shard: `out` is its file
  int threads = 0;                                    // 0: the allowed cores
  bool overwrite = false;                             // replace an existing pack at `out`
  uint64_t page_bytes = kDefaultPageBytes;
};

struct PackReport {
  PackSummary summary;
  int64_t resumed_records = 0;  // records packed by an interrupted run
  double seconds = 0;
};

// Writes to `out` + ".partial" and renames it at the end. After an interruption, even if the
// process was killed, the same call resumes where it stopped, and the result is byte for byte the
// same. `progress` is called on the calling thread and may throw to interrupt. Throws Exception:
// HR0446..HR0449, HR0454, and errors of reading records.
PackReport pack(const std::vector<SourcePtr>& sources, const std::string& out,
                const PackOptions& options = {}, const Progress& progress = {});

struct UnpackOptions {
  bool overwrite = false;
  bool recover = false;
  int threads = 0;
};

struct DamagedRecord {
  int64_t record = 0;
  std::string key, code, what;
};

struct UnpackReport {
  int64_t records = 0, files = 0;
  int64_t present = 0;                 // files that already existed with the same bytes
  uint64_t bytes = 0;                  // of all files
  std::string manifest;                // the path of labels.jsonl, if it was needed
  std::vector<DamagedRecord> damaged;  // records that were not restored
  std::string missing;                 // what a recovered pack lacks
  double seconds = 0;
};

// Writes the files of a pack below a folder: media and bytes under their keys, the rest to
// labels.jsonl and .npy files. Never writes outside of the folder. Throws Exception: HR0440..HR0445
// for the pack, HR0447 if a file cannot be written, HR0450 for a key that leads outside of the
// folder, HR0451 if a different file exists.
UnpackReport unpack(const std::string& path, const std::string& folder,
                    const UnpackOptions& options = {}, const Progress& progress = {});

}  // namespace headrace
