// SPDX-License-Identifier: Apache-2.0
// Writes one file of a pack, page by page, each with one write; the index comes last.
//
// After an interruption the file has whole pages and at most a piece of one. A writer
// of the same header goes on after the last whole page, so the result does not depend on
// interruptions. Used from one thread; throws Exception HR0447 and HR0448.
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
  std::vector<uint8_t> bytes;  // the column's value, or the blob as it is stored
  BlobFacts facts;             // of a blob; its reason is `reason`
  std::string reason;
};

struct PackedRecord {
  std::string key;
  std::vector<PackedValue> values;  // as many as the schema has fields
};

// Throws HR0447.
[[noreturn]] void not_written(const std::string& path, int error_number);
// Opens the path as `flags` say, makes it where it is missing (with O_DIRECTORY a folder), and
// makes this the one that writes there until the descriptor is closed: also while the path is
// renamed. Throws HR0447; HR0448 when another one writes.
int open_for_writing(const std::string& path, int flags);

// Holds the lock on its file for as long as it lives.
class PackWriter {
 public:
  // Creates the file, or goes on with one that has the same header, all of whose pages it reads:
  // `tick` is called after each with the records so far, and may throw.
  PackWriter(std::string path, PackHeader header, const std::function<void(uint64_t)>& tick = {});
  ~PackWriter();
  PackWriter(const PackWriter&) = delete;
  PackWriter& operator=(const PackWriter&) = delete;

  // Records that are in whole pages already: the next one to add.
  uint64_t records() const { return table_.records() + page_.records(); }
  // REQUIRES: records() < header.records.
  void add(const PackedRecord& record);
  // Writes the rest and makes sure that it is on the disk. REQUIRES: all records were added.
  void finish();
  // Table of all records so far; for reports.
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
  uint64_t end_ = 0;  // of what was written
  struct PageBegin {
    uint64_t offset, data_offset, first_record;
  };
  std::vector<PageBegin> pages_;
  PackTable table_;             // of whole pages
  PackTable page_;              // of the page that is being filled
  std::vector<uint8_t> blobs_;  // of that page
  uint64_t page_key_bytes_ = 0;
  uint64_t content_ = 0;
  size_t row_bytes_ = 0;  // of a record in a page's table, without its key
};

}  // namespace headrace
