// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/pack/pack_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "headrace/base/byte_stream.h"
#include "headrace/formats/pack/pack_file.h"
#include "headrace/storage/crc32c.h"

namespace headrace {
namespace {

const ErrorCode kNotWritten{
    "HR0447", ErrorKind::kStorage, "write failed",
    "The operating system failed to write a file: the disk is full or faulty, or the folder does "
    "not exist or is not writable. The records packed so far remain under the name ending in "
    ".partial; once the cause is fixed, the same command resumes from there."};

const ErrorCode kBusy{
    "HR0448", ErrorKind::kConfig, "pack is being written",
    "Another process is writing this pack. Wait for it, stop it, or write to another name."};

}  // namespace

void not_written(const std::string& path, int error_number) {
  const bool is_full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  throw Exception(
      {.code = &kNotWritten,
       .what = std::generic_category().message(error_number),
       .where = Where{.file = path},
       .hint = is_full ? "free disk space, then run the same command again; it resumes where it "
                         "stopped"
                       : "check that the folder exists and is writable"});
}

int open_for_writing(const std::string& path, int flags) {
  for (;;) {
    const bool folder = (flags & O_DIRECTORY) != 0;
    if (folder && ::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) not_written(path, errno);
    const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor < 0 && (errno == EINTR || (folder && errno == ENOENT))) continue;
    if (descriptor < 0) not_written(path, errno);
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      ::close(descriptor);
      raise(kBusy, "another process is writing " + path,
            "wait until it has finished, or choose another name");
    }
    // Between open() and lock, the previous owner may have renamed its file.
    struct stat mine{}, named{};
    if (::fstat(descriptor, &mine) == 0 && ::lstat(path.c_str(), &named) == 0 &&
        mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) {
      return descriptor;
    }
    ::close(descriptor);
  }
}

PackWriter::PackWriter(std::string path, PackHeader header,
                       const std::function<void(uint64_t)>& tick)
    : path_(std::move(path)),
      header_(std::move(header)),
      table_(header_.schema),
      page_(header_.schema) {
  for (const TableField& field : table_.fields) {
    row_bytes_ += field.width > 0 ? field.width : 4 * sizeof(uint32_t) + 2;
  }
  row_bytes_ += sizeof(uint32_t);
  open(tick);
}

PackWriter::~PackWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PackWriter::open(const std::function<void(uint64_t)>& tick) {
  descriptor_ = open_for_writing(path_, O_RDWR | O_CREAT);
  try {
    const std::vector<uint8_t> header = bytes_from_header(header_);
    header_.header_bytes = header.size();
    if (!go_on(tick)) {
      if (::ftruncate(descriptor_, 0) != 0) not_written(path_, errno);
      write_at(0, header);
      end_ = header.size();
    }
    if (::ftruncate(descriptor_, static_cast<off_t>(end_)) != 0) not_written(path_, errno);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

// Takes over the complete pages of an interrupted run. False if the file is not from such a run.
bool PackWriter::go_on(const std::function<void(uint64_t)>& tick) {
  Result<File> file = File::open(path_);
  if (!file || file->size() < header_.header_bytes) return false;
  std::vector<uint8_t> found(header_.header_bytes);
  if (!file->read(0, found) || found != bytes_from_header(header_)) return false;
  Result<ScannedPages> scanned = scan_pages(*file, header_, /*check_blobs=*/true, tick);
  if (!scanned) throw Exception(std::move(scanned.error()));  // not a reason to start over
  for (const PackPage& page : scanned->pages) {
    pages_.push_back({page.offset, page.data_offset, page.first_record});
  }
  table_ = std::move(scanned->table);
  end_ = scanned->end;
  count_marks(0);
  return true;
}

void PackWriter::count_marks(uint64_t first) {
  for (uint64_t i = first; i < table_.records(); ++i) {
    content_ += record_mark(table_, i, header_.first_record + i);
  }
}

void PackWriter::add(const PackedRecord& record) {
  uint64_t bytes = row_bytes_ + record.key.size();
  for (size_t i = 0; i < record.values.size(); ++i) {
    if (page_.fields[i].width == 0) bytes += aligned(record.values[i].bytes.size(), kBlobAlignment);
  }
  const uint64_t filled = kPageHeaderBytes + page_.records() * row_bytes_ + page_key_bytes_ +
                          kBlobAlignment + blobs_.size();
  if (page_.records() > 0 && filled + bytes > header_.page_bytes) write_page();
  for (size_t i = 0; i < record.values.size(); ++i) {
    const PackedValue& value = record.values[i];
    TableField& field = page_.fields[i];
    if (field.width > 0) {
      field.values.insert(field.values.end(), value.bytes.begin(), value.bytes.end());
      continue;
    }
    BlobFacts facts = value.facts;
    facts.reason = page_.reason_number(value.reason);
    field.add(facts);
    blobs_.insert(blobs_.end(), value.bytes.begin(), value.bytes.end());
    blobs_.resize(aligned(blobs_.size(), kBlobAlignment));
  }
  page_.keys.add(record.key);
  page_key_bytes_ += record.key.size();
}

void PackWriter::write_page() {
  if (page_.records() == 0) return;
  const std::vector<uint8_t> table = bytes_from_table(page_);
  PageHeader page;
  page.number = pages_.size();
  page.first_record = table_.records();
  page.records = static_cast<uint32_t>(page_.records());
  page.table_bytes = static_cast<uint32_t>(table.size());
  page.data_offset =
      static_cast<uint32_t>(aligned(kPageHeaderBytes + table.size(), kBlobAlignment));
  page.bytes = aligned(page.data_offset + blobs_.size(), kPageAlignment);
  const auto header = bytes_from_page(page, table);
  // One write per page: an interruption leaves complete pages and a partial one.
  std::vector<uint8_t> bytes;
  bytes.reserve(page.bytes);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), table.begin(), table.end());
  bytes.resize(page.data_offset);
  bytes.insert(bytes.end(), blobs_.begin(), blobs_.end());
  bytes.resize(page.bytes);
  write_at(end_, bytes);
  pages_.push_back({end_, end_ + page.data_offset, page.first_record});
  end_ += page.bytes;
  const uint64_t first = table_.records();
  table_.append(page_);
  count_marks(first);
  page_.clear();
  blobs_.clear();
  page_key_bytes_ = 0;
}

void PackWriter::finish() {
  write_page();
  write_index();
  if (::fsync(descriptor_) != 0) not_written(path_, errno);
}

void PackWriter::write_index() {
  std::vector<Section> sections;
  const auto put = [&](SectionTag tag, uint32_t field, std::span<const uint8_t> bytes) {
    const bool needed = tag != SectionTag::kOriginalBytes && tag != SectionTag::kOriginalSum &&
                        tag != SectionTag::kForm && tag != SectionTag::kReason &&
                        tag != SectionTag::kReasons;
    sections.push_back({.tag = tag,
                        .field = field,
                        .offset = end_,
                        .bytes = bytes.size(),
                        .checksum = crc32c(bytes),
                        .flags = needed ? kMustUnderstand : 0});
    write_at(end_, bytes);
    end_ = aligned(end_ + bytes.size(), kSectionAlignment);
  };
  ByteWriter list;
  for (const PageBegin& page : pages_) {
    list.number(page.offset);
    list.number(page.data_offset);
    list.number(page.first_record);
  }
  put(SectionTag::kPages, 0, list.out);
  for_each_section(table_, put);
  const std::vector<uint8_t> directory = bytes_from_sections(sections);
  PackTail tail;
  tail.directory_offset = end_;
  tail.sections = static_cast<uint32_t>(sections.size());
  tail.directory_checksum = crc32c(directory);
  tail.records = table_.records();
  tail.pages = pages_.size();
  tail.content = content_;
  tail.file_bytes = end_ + directory.size() + kPackTailBytes;
  write_at(end_, directory);
  write_at(end_ + directory.size(), bytes_from_tail(tail));
  end_ = tail.file_bytes;
}

void PackWriter::write_at(uint64_t offset, std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) not_written(path_, errno);
    if (written == 0) not_written(path_, ENOSPC);
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

}  // namespace headrace
