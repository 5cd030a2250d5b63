// SPDX-License-Identifier: Apache-2.0
// Writes one file of a pack: one page at a time, each with a single write, and the index last.
//
// After an interruption the file has complete pages and at most one partial page. A writer with the
// same header continues after the last complete page, so the result does not depend on
// interruptions. For one thread; throws Exception HR0447 and HR0448.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "headrace/formats/pack/pack_layout.h"
#include "headrace/formats/pack/pack_table.h"

namespace headrace {

// One record, ready to be written.
struct PackedValue {
  std::vector<uint8_t> bytes;  // the column's value, or the blob as stored
  BlobFacts facts;             // for a blob; its reason is `reason`
  std::string reason;
};

struct PackedRecord {
  std::string key;
  std::vector<PackedValue> values;  // one per schema field
};

// Throws HR0447.
[[noreturn]] void not_written(const std::string& path, int error_number);
// Opens the path with `flags`, creates it if it is missing (with O_DIRECTORY, as a folder), and
// locks it for writing until the descriptor is closed, even if it is renamed. Throws HR0447; HR0448
// if another process holds the lock.
int open_for_writing(const std::string& path, int flags);

// Holds the lock on its file during its lifetime.
class PackWriter {
 public:
  // Creates the file, or resumes one with the same header after reading all its pages: `tick` is
  // called after each with the number of records so far, and may throw.
  PackWriter(std::string path, PackHeader header, const std::function<void(uint64_t)>& tick = {});
  ~PackWriter();
  PackWriter(const PackWriter&) = delete;
  PackWriter& operator=(const PackWriter&) = delete;

  // The number of records so far, including those of a resumed file: the index of the next one to
  // add.
  uint64_t records() const { return table_.records() + page_.records(); }
  // REQUIRES: records() < header.records.
  void add(const PackedRecord& record);
  // Writes the rest and syncs it to disk. REQUIRES: all records were added.
  void finish();
  // The table of all records in complete pages, for reports.
  const PackTable& table() const { return table_; }
  uint64_t content() const { return content_; }
  uint64_t file_bytes() const { return end_; }
  size_t pages() const { return pages_.size(); }

 private:
  void open(const std::function<void(uint64_t)>& tick);
  bool go_on(const std::function<void(uint64_t)>& tick);
  void write_page();
  void write_index();
  void write_at(uint64_t offset, std::span<const uint8_t> bytes);
  void count_marks(uint64_t first);

  const std::string path_;
  PackHeader header_;
  int descriptor_ = -1;
  uint64_t end_ = 0;  // of the written part
  struct PageBegin {
    uint64_t offset, data_offset, first_record;
  };
  std::vector<PageBegin> pages_;
  PackTable table_;             // records in complete pages
  PackTable page_;              // records in the page in progress
  std::vector<uint8_t> blobs_;  // blobs of that page
  uint64_t page_key_bytes_ = 0;
  uint64_t content_ = 0;
  size_t row_bytes_ = 0;  // bytes per record in a page's table, without its key
};

}  // namespace headrace
