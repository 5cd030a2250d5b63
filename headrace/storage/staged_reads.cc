// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/staged_reads.h"

#include <utility>

namespace headrace {
namespace {

thread_local std::span<StagedPiece> staged;

// Whether the piece is there, for a reader of this version.
bool serves(const StagedPiece& each, std::string_view path, const FileIdentity* version) {
  if (!each.memory || each.piece.path != path) return false;  // taken, or another file
  return !version || !each.piece.known || *each.piece.known == *version;
}

}  // namespace

StagedReads::StagedReads(std::span<StagedPiece> pieces) : outer_(staged) { staged = pieces; }

StagedReads::~StagedReads() { staged = outer_; }

std::optional<std::span<const uint8_t>> StagedReads::find(std::string_view path, uint64_t offset,
                                                          uint64_t bytes,
                                                          const FileIdentity* version) {
  for (const StagedPiece& each : staged) {
    const bool whole = each.piece.bytes == FilePiece::kWhole;
    if (whole != (bytes == FilePiece::kWhole) || !serves(each, path, version)) continue;
    if (whole) return each.bytes;
    if (offset < each.piece.offset) continue;
    const uint64_t skipped = offset - each.piece.offset;
    if (skipped > each.bytes.size() || bytes > each.bytes.size() - skipped) continue;
    return each.bytes.subspan(skipped, bytes);
  }
  return {};
}

bool StagedReads::take(std::string_view path, uint64_t offset, uint64_t bytes,
                       const FileIdentity* version, Buffer& out) {
  for (StagedPiece& each : staged) {
    if (!each.alone || each.piece.offset != offset || each.piece.bytes != bytes ||
        !serves(each, path, version)) {
      continue;
    }
    out = std::move(*each.memory);
    each.memory = nullptr;
    each.bytes = {};
    return true;
  }
  return false;
}

std::shared_ptr<const Buffer> StagedReads::share(std::string_view path, uint64_t offset,
                                                 uint64_t bytes, const FileIdentity* version) {
  for (StagedPiece& each : staged) {
    if (each.piece.offset != offset || !serves(each, path, version) ||
        each.memory->size() != bytes) {
      continue;
    }
    each.alone = false;
    return each.memory;
  }
  return nullptr;
}

}  // namespace headrace
