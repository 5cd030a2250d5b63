// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/formats/hdf5/hdf5_checksum.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kDamaged{
    "HR0489", ErrorKind::kData, "damaged HDF5 file",
    "A structure of the file is invalid, lies outside the file, or does not match its checksum. "
    "The file was truncated, modified, or not closed by its writer. `h5dump` or h5py may report "
    "more details; copy or rewrite the file."};

const ErrorCode kUnsupported{
    "HR0490", ErrorKind::kUnsupported, "unsupported HDF5 feature",
    "The file is valid as far as it was read, but stores this dataset in a way that Headrace's "
    "own reader does not support: compound types, references, rare number formats, or a filter "
    "other than deflate, shuffle, fletcher32 and lzf. Omit the dataset with fields=[...], rewrite "
    "it with h5py, or, if you trust the file, read it through h5py with trusted=True."};

const ErrorCode kTooLarge{
    "HR0493", ErrorKind::kResource, "HDF5 file declares impossible sizes",
    "The file declares sizes that do not match its bytes, or chunks or records that are too large "
    "to fit into memory (a chunk may have 256 MiB). Rewrite a genuine dataset with smaller chunks; "
    "do not read a file of unknown origin."};

const ErrorCode kLeadsOutside{
    "HR0494", ErrorKind::kUnsupported, "HDF5 file refers to other files",
    "An external link, external storage or a virtual dataset refers to other files, so a malicious "
    "file could read any file on this machine. Such references are never followed, not even with "
    "trusted=True. Copy the data into the file (h5repack, or h5py), or open the other files "
    "directly."};

constexpr std::array<uint8_t, 8> kSignature = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
constexpr uint64_t kMaxStructure = uint64_t{64} << 20;  // bytes of one structure

Error error_at(const ErrorCode& code, const File& file, int64_t offset, std::string what,
               std::string hint, std::string member) {
  return Error{.code = &code,
               .what = std::move(what),
               .where = Where{.file = file.path(), .member = std::move(member), .offset = offset},
               .hint = std::move(hint)};
}

}  // namespace

Error hdf5_damaged(const File& file, int64_t offset, std::string what, std::string member) {
  return error_at(kDamaged, file, offset, std::move(what), "copy or rewrite the file",
                  std::move(member));
}

Error hdf5_unsupported(const File& file, std::string what, std::string hint, std::string member) {
  return error_at(kUnsupported, file, -1, std::move(what), std::move(hint), std::move(member));
}

Error hdf5_too_large(const File& file, std::string what, std::string hint, std::string member) {
  return error_at(kTooLarge, file, -1, std::move(what), std::move(hint), std::move(member));
}

Error hdf5_leads_outside(const File& file, std::string what, std::string member) {
  return error_at(kLeadsOutside, file, -1, std::move(what),
                  "copy the data into this file, or exclude it with fields=[...]",
                  std::move(member));
}

bool find_hdf5_signature(const File& file, uint64_t most, uint64_t& offset) {
  std::array<uint8_t, kSignature.size()> found;
  for (uint64_t at = 0; at <= most && at + found.size() <= file.size();
       at = at == 0 ? 512 : at * 2) {
    if (!file.read(at, found)) return false;
    if (found != kSignature) continue;
    offset = at;
    return true;
  }
  return false;
}

uint64_t Hdf5Cursor::number(int bytes) {
  const std::span<const uint8_t> raw = in_.bytes(static_cast<uint64_t>(bytes));
  uint64_t value = 0;
  if (!raw.empty()) std::memcpy(&value, raw.data(), raw.size());
  return value;
}

uint64_t Hdf5Cursor::address() {
  const uint64_t value = number(address_bytes_);
  const uint64_t all_ones = UINT64_MAX >> (64 - 8 * address_bytes_);
  return value == all_ones ? kHdf5Undefined : value;
}

Hdf5File Hdf5File::open(const std::string& path) {
  Result<File> file = File::open(path);
  if (!file) throw Exception(std::move(file.error()));
  Hdf5File out(std::move(*file));
  out.read_superblock();
  return out;
}

bool Hdf5File::holds(uint64_t address, uint64_t bytes) const {
  const uint64_t size = file_.size() - base_;
  return address <= size && bytes <= size - address;
}

void Hdf5File::damaged(uint64_t address, std::string what) const {
  throw Exception(
      hdf5_damaged(file_, address == kHdf5Undefined ? -1 : offset_of(address), std::move(what)));
}

std::vector<uint8_t> Hdf5File::read(uint64_t address, uint64_t bytes, std::string_view what) const {
  if (!holds(address, bytes)) {
    damaged(address, std::string(what) + " of " + std::to_string(bytes) +
                         " bytes is not inside the file of " + std::to_string(file_.size()) +
                         " bytes");
  }
  if (bytes > kMaxStructure) {
    throw Exception(hdf5_too_large(file_,
                                   std::string(what) + " has " + std::to_string(bytes) + " bytes",
                                   "structures have at most 64 MiB"));
  }
  spend(bytes, what);
  std::vector<uint8_t> out(bytes);
  if (Result<void> read = this->read(address, out); !read) throw Exception(read.error());
  return out;
}

void Hdf5File::check(std::span<const uint8_t> bytes, uint64_t address,
                     std::string_view what) const {
  uint32_t stored = 0;
  if (bytes.size() < sizeof stored) damaged(address, std::string(what) + " is too short");
  std::memcpy(&stored, bytes.last(sizeof stored).data(), sizeof stored);
  if (hdf5_metadata_checksum(bytes.first(bytes.size() - sizeof stored)) != stored) {
    damaged(address, std::string(what) + " has a wrong checksum");
  }
}

std::vector<uint8_t> Hdf5File::read_checked(uint64_t address, uint64_t bytes,
                                            std::string_view signature,
                                            std::string_view what) const {
  std::vector<uint8_t> out = read(address, bytes, what);
  if (out.size() < 8 || std::memcmp(out.data(), signature.data(), signature.size()) != 0) {
    damaged(address, std::string(what) + " does not begin with " + std::string(signature));
  }
  check(out, address, what);
  return out;
}

Result<void> Hdf5File::read(uint64_t address, std::span<uint8_t> out) const {
  if (!holds(address, out.size())) {
    return hdf5_damaged(file_, offset_of(address),
                        std::to_string(out.size()) + " bytes of data are not inside the file of " +
                            std::to_string(file_.size()) + " bytes");
  }
  return file_.read(base_ + address, out);
}

void Hdf5File::read_superblock() {
  if (!find_hdf5_signature(file_, UINT64_MAX / 4, base_)) {
    throw Exception(hdf5_damaged(file_, 0, "it lacks the signature of an HDF5 file"));
  }
  const std::vector<uint8_t> version = read(8, 1, "the superblock");
  if (version[0] > 3) {
    throw Exception(hdf5_unsupported(
        file_,
        "superblock version " + std::to_string(version[0]) + ", but only 0 to 3 are supported",
        "write it with libver=('earliest', 'v114')"));
  }
  if (version[0] < 2) {
    read_old_superblock(version[0]);
  } else {
    read_new_superblock();
  }
  if (root_ == kHdf5Undefined) damaged(0, "the superblock has no root group");
}

void Hdf5File::read_widths(uint64_t offset) {
  const std::vector<uint8_t> widths = read(offset, 2, "the superblock");
  address_bytes_ = widths[0], length_bytes_ = widths[1];
  const auto is_width = [](int bytes) { return bytes == 2 || bytes == 4 || bytes == 8; };
  if (is_width(address_bytes_) && is_width(length_bytes_)) return;
  damaged(offset, "addresses of " + std::to_string(address_bytes_) + " and lengths of " +
                      std::to_string(length_bytes_) + " bytes");
}

void Hdf5File::read_old_superblock(int version) {
  const int begin = version == 0 ? 24 : 28;
  read_widths(13);
  const std::vector<uint8_t> rest = read(begin, 6 * address_bytes_, "the superblock");
  Hdf5Cursor in = cursor(rest);
  const uint64_t stored_base = in.number(address_bytes_);
  in.address();  // of free space
  const uint64_t end = in.address();
  if (in.address() != kHdf5Undefined) {
    throw Exception(hdf5_unsupported(file_, "a file of the family, multi or split driver",
                                     "join its parts with h5repart or h5repack"));
  }
  in.address();  // the root's name
  root_ = in.address();
  check_end(end, stored_base);
}

void Hdf5File::read_new_superblock() {
  read_widths(9);
  const std::vector<uint8_t> all = read(0, 12 + 4 * address_bytes_ + 4, "the superblock");
  check(all, 0, "the superblock");
  Hdf5Cursor in = cursor(std::span(all).subspan(12));
  const uint64_t stored_base = in.number(address_bytes_);
  in.address();  // address of the superblock extension
  const uint64_t end = in.address();
  root_ = in.address();
  check_end(end, stored_base);
}

void Hdf5File::check_end(uint64_t end, uint64_t stored_base) const {
  if (end == kHdf5Undefined || end < stored_base)
    damaged(0, "the superblock has no end-of-file address");
  const uint64_t bytes = end - stored_base;
  if (!holds(0, bytes)) {
    throw Exception(hdf5_damaged(
        file_, static_cast<int64_t>(file_.size()),
        "the file was truncated: it has " + with_commas(static_cast<int64_t>(file_.size())) +
            " bytes, but its superblock declares " + std::to_string(base_ + bytes)));
  }
}

}  // namespace headrace
