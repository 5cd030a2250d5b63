// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/reading/shared_pieces.h"

#include <algorithm>

namespace headrace {

SharedPieces::Found SharedPieces::find(const FilePiece& piece, int64_t record) {
  if (pieces_.size() >= drop_at_) drop_gone();
  const auto there = pieces_.find(place_of(piece, piece.path));
  if (there == pieces_.end()) {
    auto made = std::make_unique<Piece>(Piece{.path = piece.path});
    const Place place = place_of(piece, made->path);
    pieces_.emplace(place, std::move(made));
    return {.is_new = true};
  }
  Piece& found = *there->second;
  if (found.under_way) {
    found.waiting.push_back(record);
    return {};
  }
  auto memory = found.memory.lock();
  found.under_way = !memory;
  return {.is_new = !memory, .memory = std::move(memory)};
}

std::vector<int64_t> SharedPieces::arrived(const FilePiece& piece,
                                           const std::shared_ptr<Buffer>& memory) {
  const auto found = pieces_.find(place_of(piece, piece.path));
  if (found == pieces_.end()) return {};
  std::vector<int64_t> waiting = std::move(found->second->waiting);
  if (memory) {
    found->second->memory = memory;
    found->second->under_way = false;
  } else {
    pieces_.erase(found);
  }
  return waiting;
}

void SharedPieces::drop_gone() {
  std::erase_if(pieces_, [](const auto& each) { return each.second->is_gone(); });
  drop_at_ = std::max<size_t>(64, 2 * pieces_.size());
}

}  // namespace headrace
