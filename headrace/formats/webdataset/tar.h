// SPDX-License-Identifier: Apache-2.0
// Iterates over the members of a tar archive: v7, ustar, GNU and PAX headers.
//
// Nothing is extracted and no name is used as a path. The iteration terminates for any bytes: each
// step advances or fails. For one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"

namespace headrace {

inline constexpr uint64_t kTarBlock = 512;

// The source of the archive's bytes: memory, or a file through a window.
class TarInput {
 public:
  using ReadBytes = std::function<Result<void>(uint64_t offset, std::span<uint8_t> out)>;
  explicit TarInput(std::span<const uint8_t> memory) : size_(memory.size()), window_(memory) {}
  // `read` is called with offsets inside [0, size).
  TarInput(ReadBytes read, uint64_t size) : read_(std::move(read)), size_(size) {}

  uint64_t size() const { return size_; }
  // REQUIRES: offset + count <= size(), count <= kMax. Valid until the next call.
  static constexpr size_t kMax = size_t{1} << 20;
  Result<std::span<const uint8_t>> at(uint64_t offset, size_t count);

 private:
  ReadBytes read_;
  uint64_t size_ = 0;
  std::span<const uint8_t> window_;
  uint64_t begin_ = 0;  // of the window
  Buffer memory_;
};

enum class TarKind : uint8_t {
  kFile,
  kSparse,  // a sparse file, stored without its holes
  kLink,    // hard or symbolic: no data
  kOther    // a folder, a device, an unknown type
};

struct TarMember {
  std::string_view name;  // valid until the next step
  TarKind kind = TarKind::kFile;
  uint64_t begin = 0;  // offset of its first header in the input
  uint64_t data = 0, bytes = 0;
  uint64_t end = 0;  // end of its last block, or of the input if that comes first
};

class TarWalker {
 public:
  explicit TarWalker(TarInput& input, uint64_t begin = 0) : input_(input), at_(begin) {}

  // False at the end of the archive. Errors: those of the input; HR0464 invalid, HR0465
  // unsupported, both with the offset. After an error in a truncated member, `out` has its name;
  // nothing follows an error.
  Result<bool> next(TarMember& out);
  // After the last member: whether the archive ended with zero blocks, not just with the end of the
  // file. Without them it may have been truncated between two members; GNU tar and Python's tarfile
  // accept that.
  bool has_end() const { return has_end_; }
  // After the last member: HR0464 if bytes other than zero follow the end of the archive, as in
  // archives joined with cat. Stopping there would silently drop the rest.
  Result<void> check_end();

 private:
  Result<bool> step(TarMember& out, bool& extended);
  Result<void> take_extension(char type, uint64_t bytes);
  Result<void> take_pax(std::string_view text, bool global, uint64_t offset);
  Result<void> take_pax_value(std::string_view key, std::string_view value, bool global,
                              uint64_t offset);
  Result<uint64_t> after_sparse_map(std::span<const uint8_t> header, uint64_t offset);
  Error damaged(std::string what, uint64_t offset) const;

  TarInput& input_;
  uint64_t at_;
  bool has_end_ = false;  // then at_ is the end
  // Values from headers before the member's own.
  std::optional<std::string> long_name_;
  std::optional<uint64_t> pax_size_;
  bool pax_sparse_ = false;
  std::string name_;  // if it is not a single part of the header
  std::array<uint8_t, kTarBlock> header_;
};

// HR0465, for a member whose stored data is not the file's content.
Error sparse_member();

// Whether this first block of a file is the header of a member.
bool is_tar_header(std::span<const uint8_t> block);

}  // namespace headrace
