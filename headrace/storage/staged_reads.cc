// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/staged_reads.h"

namespace headrace {
namespace {

thread_local std::span<const StagedPiece> staged;

}  // namespace

StagedReads::StagedReads(std::span<const StagedPiece> pieces) : outer_(staged) { staged = pieces; }

StagedReads::~StagedReads() { staged = outer_; }

std::optional<std::span<const uint8_t>> StagedReads::find(std::string_view path, uint64_t offset,
                                                          uint64_t bytes) {
  for (const StagedPiece& each : staged) {
    const bool whole = each.piece.bytes == FilePiece::kWhole;
    if (whole != (bytes == FilePiece::kWhole) || each.piece.path != path) continue;
    if (whole) return each.bytes;
    if (offset < each.piece.offset) continue;
    const uint64_t skipped = offset - each.piece.offset;
    if (skipped > each.bytes.size() || bytes > each.bytes.size() - skipped) continue;
    return each.bytes.subspan(skipped, bytes);
  }
  return {};
}

}  // namespace headrace
