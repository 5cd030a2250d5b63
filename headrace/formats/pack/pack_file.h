// SPDX-License-Identifier: Apache-2.0
// One file of a pack, open for reading: a whole dataset, or a shard of a dataset.
//
// Everything is checked once on opening: afterwards each blob is known to be within its page.
// Memory holds the columns, the keys and sixteen bytes per blob. Bytes are read (pread), never
// mapped: a file that shrinks is an error, not a signal (SIGBUS). Const members may be called from
// any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/formats/pack/pack_layout.h"
#include "headrace/formats/pack/pack_table.h"
#include "headrace/sources/name_list.h"
#include "headrace/storage/file.h"

namespace headrace {

struct PackPage {
  uint64_t offset = 0;       // in the file
  uint64_t data_offset = 0;  // of its first blob, in the file
  uint64_t first_record = 0;
};

struct BlobPlace {
  uint64_t offset = 0;
  uint32_t bytes = 0, sum = 0;
};

// The complete pages at the start of a file, with or without an index after them.
struct ScannedPages {
  std::vector<PackPage> pages;
  PackTable table;
  uint64_t end = 0;     // end of the last complete page
  std::string stopped;  // why it is the last one: "page 3 is cut off"
};
// `check_blobs`: also reads all blobs, and stops before a page whose blobs do not match its table.
// `tick` is called after each page with the number of records so far, and may throw.
Result<ScannedPages> scan_pages(const File& file, const PackHeader& header, bool check_blobs,
                                const std::function<void(uint64_t)>& tick = {});

// The header of an open file: HR0440, HR0441.
Result<PackHeader> read_pack_header(const File& file);

class PackFile {
 public:
  // HR0440..HR0443, or a storage error. `recover`: without a valid index, uses the complete pages.
  static Result<PackFile> open(const std::string& path, bool recover = false);

  const std::string& path() const { return file_.path(); }
  uint64_t file_bytes() const { return file_.size(); }
  const PackHeader& header() const { return header_; }
  int64_t records() const { return keys_.size(); }
  const std::vector<PackPage>& pages() const { return pages_; }
  // Sum of record_mark() over all records.
  uint64_t content() const { return content_; }
  // What a recovered file lacks, as text; empty if it is complete.
  const std::string& missing() const { return missing_; }
  bool lacks_records() const { return records_ < header_.records; }

  std::string_view key(int64_t record) const { return keys_[record]; }
  std::span<const uint8_t> column(size_t field, int64_t record) const;
  const BlobPlace& blob(size_t field, int64_t record) const {
    return fields_[field].blobs[static_cast<size_t>(record)];
  }
  bool is_async() const { return file_.is_async(); }
  FilePiece piece(size_t field, int64_t record) const {
    return file_.piece(blob(field, record).offset, blob(field, record).bytes);
  }
  // Reads a blob into `out`, which is resized. `verify`: HR0444 if its checksum differs.
  Result<void> read(size_t field, int64_t record, bool verify, Buffer& out) const;

  // Hints that a page will be read soon.
  void will_read_page(size_t number) const {
    const uint64_t end = number + 1 < pages_.size() ? pages_[number + 1].offset : pages_end_;
    file_.will_read(pages_[number].offset, end - std::min(end, pages_[number].offset));
  }

  // The table of all records; read from the file each time.
  Result<PackTable> table() const;
  // Checks that the table in a page matches the index, else HR0443. Does not read blobs.
  Result<void> check_page(size_t number) const;

 private:
  struct LoadedField {
    size_t width = 0;
    std::vector<uint8_t> values;
    std::vector<BlobPlace> blobs;
  };
  explicit PackFile(File file) : file_(std::move(file)) {}
  Result<void> load_index();
  Result<void> load_pages(std::string why);
  Result<PackTail> read_tail() const;
  Result<void> load_directory(const PackTail& tail);
  Result<void> load_page_list(const PackTail& tail);
  Result<void> load_table();
  // The section's bytes, checked; HR0443 if there is none of this size.
  Result<void> section(SectionTag tag, uint32_t field, uint64_t bytes, Buffer& out) const;
  const Section* find_section(SectionTag tag, uint32_t field) const;
  bool place_blobs(const std::vector<std::vector<uint32_t>>& sizes, uint64_t end);
  bool is_same_record(const PackTable& table, size_t row, int64_t record) const;
  Error damaged_index(std::string what) const;
  Error in_record(Error error, size_t field, int64_t record) const;

  File file_;
  PackHeader header_;
  std::vector<Section> sections_;
  std::vector<PackPage> pages_;
  uint64_t pages_end_ = 0;
  std::vector<LoadedField> fields_;
  NameList keys_;
  uint64_t records_ = 0;
  uint64_t content_ = 0;
  std::string missing_;
};

}  // namespace headrace
