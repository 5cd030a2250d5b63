// SPDX-License-Identifier: Apache-2.0
#include "headrace/sources/packed/packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "headrace/base/permutation.h"
#include "headrace/sources/columns/array_elements.h"

namespace headrace {
namespace {

// Rows that are not full, indexed by their remaining room.
class RowsByFreeSpace {
 public:
  explicit RowsByFreeSpace(int64_t length) : newest_(static_cast<size_t>(length) + 1, -1) {
    for (size_t words = newest_.size(); words > 1;) {
      words = (words + 63) / 64;
      levels_.emplace_back(words, 0);
    }
  }

  // Removes the row with the smallest room that is at least `room`; among several, the last one
  // added. -1 if there is none.
  int64_t take(int64_t room) {
    const int64_t found = next(static_cast<size_t>(room));
    if (found < 0) return -1;
    const int64_t row = newest_[static_cast<size_t>(found)];
    newest_[static_cast<size_t>(found)] = below_[static_cast<size_t>(row)];
    if (newest_[static_cast<size_t>(found)] < 0) clear(static_cast<size_t>(found));
    return row;
  }
  void put(int64_t row, int64_t room) {
    if (static_cast<size_t>(row) >= below_.size()) below_.resize(static_cast<size_t>(row) + 1, -1);
    below_[static_cast<size_t>(row)] = newest_[static_cast<size_t>(room)];
    newest_[static_cast<size_t>(room)] = row;
    auto at = static_cast<size_t>(room);
    for (std::vector<uint64_t>& level : levels_) {
      level[at / 64] |= uint64_t{1} << at % 64;
      at /= 64;
    }
  }

 private:
  void clear(size_t at) {
    for (std::vector<uint64_t>& level : levels_) {
      level[at / 64] &= ~(uint64_t{1} << at % 64);
      if (level[at / 64] != 0) return;
      at /= 64;
    }
  }
  // The smallest room of at least `at` for which a row exists.
  int64_t next(size_t at) const {
    for (size_t l = 0; l < levels_.size(); ++l) {
      const size_t word = at / 64;
      if (word >= levels_[l].size()) return -1;
      const uint64_t here = levels_[l][word] >> at % 64 << at % 64;
      if (here != 0) {
        size_t found = word * 64 + static_cast<size_t>(std::countr_zero(here));
        while (l-- > 0) {
          found = found * 64 + static_cast<size_t>(std::countr_zero(levels_[l][found]));
        }
        return static_cast<int64_t>(found);
      }
      at = word + 1;
    }
    return -1;
  }

  std::vector<int64_t> newest_;  // by room: the row added last, -1 if there is none
  std::vector<int64_t> below_;   // by row: the row added before it with the same room
  // Hierarchical bitmap: a bit per remaining room for which a row exists, then a bit per nonzero
  // word of the level below.
  std::vector<std::vector<uint64_t>> levels_;
};

// Finds the first row with enough room, in a tree that has the maximum room below each node.
class RowsInOrder {
 public:
  explicit RowsInOrder(size_t rows) : leaves_(std::bit_ceil(std::max<size_t>(rows, 1))) {
    most_.assign(2 * leaves_, 0);
  }
  // -1 if there is none.
  int64_t first(int64_t room) const {
    if (most_[1] < room) return -1;
    size_t node = 1;
    while (node < leaves_) node = most_[2 * node] >= room ? 2 * node : 2 * node + 1;
    return static_cast<int64_t>(node - leaves_);
  }
  int64_t room(int64_t row) const { return most_[leaves_ + static_cast<size_t>(row)]; }
  void set(int64_t row, int64_t room) {
    size_t node = leaves_ + static_cast<size_t>(row);
    for (most_[node] = room; node > 1;) {
      node /= 2;
      most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
    }
  }

 private:
  size_t leaves_;
  std::vector<int64_t> most_;
};

PackedPiece piece_of(int64_t begin, size_t document, int64_t count, int64_t length) {
  return {.begin = begin,
          .document = static_cast<uint32_t>(document),
          .continues = begin + count < length,
          .count = static_cast<int32_t>(count)};
}

// The pieces to pack, each no longer than a row.
std::vector<PackedPiece> pieces_of(const std::vector<int64_t>& lengths, const RowPacking& options,
                                   DocumentRows& out) {
  std::vector<PackedPiece> pieces;
  pieces.reserve(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int64_t length = lengths[i];
    const bool too_long = length > options.length;
    if (length == 0 || (too_long && options.too_long == LongDocument::kDrop)) {
      ++out.dropped;
      out.tokens_left_out += length;
      continue;
    }
    out.cut += too_long;
    for (int64_t begin = 0; begin < length; begin += options.length) {
      const int64_t count = std::min(options.length, length - begin);
      pieces.push_back(piece_of(begin, i, count, length));
      if (too_long && options.too_long == LongDocument::kTruncate) {
        out.tokens_left_out += length - count;
        break;
      }
    }
  }
  return pieces;
}

// Indices of the pieces, longest first; pieces of equal length in an order drawn from the seed.
std::vector<int32_t> longest_first(const std::vector<PackedPiece>& pieces,
                                   const RowPacking& options) {
  std::vector<int64_t> begins(static_cast<size_t>(options.length) + 1, 0);
  for (const PackedPiece& piece : pieces)
    ++begins[static_cast<size_t>(options.length - piece.count)];
  std::exclusive_scan(begins.begin(), begins.end(), begins.begin(), int64_t{0});
  std::vector<int32_t> order(pieces.size());
  if (pieces.empty()) return order;
  const auto count = static_cast<int64_t>(pieces.size());
  const Permutation mixed(count, options.seed);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t piece = mixed(i);
    const int64_t room = options.length - pieces[static_cast<size_t>(piece)].count;
    order[static_cast<size_t>(begins[static_cast<size_t>(room)]++)] = static_cast<int32_t>(piece);
  }
  return order;
}

// Sets the row of each piece; returns the number of rows.
int64_t best_fit(const std::vector<PackedPiece>& pieces, const RowPacking& given,
                 std::vector<int32_t>& row_of) {
  // Limits the tables, which have an entry per possible room: if all tokens fit into one row, a
  // shorter length gives the same result.
  RowPacking options = given;
  int64_t tokens = 1;
  for (const PackedPiece& piece : pieces) tokens += piece.count;
  options.length = std::min(options.length, tokens);
  RowsByFreeSpace open(options.length);
  int64_t rows = 0;
  std::vector<int64_t> room;
  for (const int32_t number : longest_first(pieces, options)) {
    const int64_t count = pieces[static_cast<size_t>(number)].count;
    int64_t row = open.take(count);
    if (row < 0) {
      row = rows++;
      room.push_back(options.length);
    }
    row_of[static_cast<size_t>(number)] = static_cast<int32_t>(row);
    room[static_cast<size_t>(row)] -= count;
    if (room[static_cast<size_t>(row)] > 0) open.put(row, room[static_cast<size_t>(row)]);
  }
  return rows;
}

int64_t first_fit(const std::vector<PackedPiece>& pieces, const RowPacking& options,
                  std::vector<int32_t>& row_of) {
  RowsInOrder open(pieces.size());
  int64_t rows = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    int64_t row = open.first(pieces[i].count);
    if (row < 0) {
      row = rows++;
      open.set(row, options.length);
    }
    row_of[i] = static_cast<int32_t>(row);
    open.set(row, open.room(row) - pieces[i].count);
  }
  return rows;
}

int64_t sequential_rows(const std::vector<PackedPiece>& pieces, const RowPacking& options,
                        std::vector<int32_t>& row_of) {
  int64_t rows = 0, room = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].count > room) {
      ++rows;
      room = options.length;
    }
    row_of[i] = static_cast<int32_t>(rows - 1);
    room -= pieces[i].count;
  }
  return rows;
}

// Groups the pieces by row, in the order of documents within each.
void put_together(const std::vector<PackedPiece>& pieces, const std::vector<int32_t>& row_of,
                  int64_t rows, DocumentRows& out) {
  out.row_ends.assign(static_cast<size_t>(rows), 0);
  for (const int32_t row : row_of) ++out.row_ends[static_cast<size_t>(row)];
  std::vector<int64_t> at(static_cast<size_t>(rows));
  std::exclusive_scan(out.row_ends.begin(), out.row_ends.end(), at.begin(), int64_t{0});
  out.pieces.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    out.pieces[static_cast<size_t>(at[static_cast<size_t>(row_of[i])]++)] = pieces[i];
  }
  out.row_ends = std::move(at);
}

void split_documents(const std::vector<int64_t>& lengths, int64_t length, DocumentRows& out) {
  int64_t room = length;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) ++out.dropped;
    out.cut += lengths[i] > room;
    for (int64_t begin = 0; begin < lengths[i];) {
      const int64_t count = std::min(room, lengths[i] - begin);
      out.pieces.push_back(piece_of(begin, i, count, lengths[i]));
      begin += count;
      room -= count;
      if (room > 0) continue;
      out.row_ends.push_back(static_cast<int64_t>(out.pieces.size()));
      room = length;
    }
  }
  if (room < length) out.row_ends.push_back(static_cast<int64_t>(out.pieces.size()));
}

}  // namespace

DocumentRows pack_documents(const std::vector<int64_t>& lengths, const RowPacking& options) {
  DocumentRows out;
  if (options.method == PackMethod::kSplit) {
    split_documents(lengths, options.length, out);
  } else {
    const std::vector<PackedPiece> pieces = pieces_of(lengths, options, out);
    std::vector<int32_t> row_of(pieces.size());
    const int64_t rows = options.method == PackMethod::kBestFit ? best_fit(pieces, options, row_of)
                         : options.method == PackMethod::kFirstFit
                             ? first_fit(pieces, options, row_of)
                             : sequential_rows(pieces, options, row_of);
    put_together(pieces, row_of, rows, out);
  }
  int64_t at = 0;
  for (const int64_t end : out.row_ends) {
    const int64_t pieces = end - at;
    int64_t tokens = 0;
    for (; at < end; ++at) tokens += out.pieces[static_cast<size_t>(at)].count;
    out.max_pieces = std::max(out.max_pieces, pieces + (tokens < options.length ? 1 : 0));
    out.tokens += tokens;
  }
  return out;
}

void write_position_ids(PackedPieces pieces, std::span<int64_t> out) {
  for (const PackedPiece& piece : pieces) {
    const auto of_piece = out.first(static_cast<size_t>(piece.count));
    std::iota(of_piece.begin(), of_piece.end(), int64_t{0});
    out = out.subspan(of_piece.size());
  }
  std::iota(out.begin(), out.end(), int64_t{0});
}

void write_segment_ids(PackedPieces pieces, std::span<int32_t> out) {
  int32_t segment = 0;
  for (const PackedPiece& piece : pieces) {
    const auto of_piece = out.first(static_cast<size_t>(piece.count));
    std::ranges::fill(of_piece, ++segment);
    out = out.subspan(of_piece.size());
  }
  std::ranges::fill(out, 0);
}

void write_cu_seqlens(PackedPieces pieces, int64_t length, std::span<int32_t> out) {
  size_t at = 0;
  int32_t begin = 0;
  for (const PackedPiece& piece : pieces) {
    out[at++] = begin;
    begin += piece.count;
  }
  if (begin < length) out[at++] = begin;
  std::fill(out.begin() + static_cast<ptrdiff_t>(at), out.end(), static_cast<int32_t>(length));
}

void write_labels(const PackedPiece& piece, const uint8_t* values, DType dtype, int shift,
                  int64_t ignore_index, uint8_t* out) {
  const size_t item = size_of(dtype), count = static_cast<size_t>(piece.count);
  if (shift == 0) {
    std::memcpy(out, values, count * item);
    fill_integers(out, dtype, 1, ignore_index);
    return;
  }
  const bool next = piece.continues;
  std::memcpy(out, values + item, (next ? count : count - 1) * item);
  if (!next) fill_integers(out + (count - 1) * item, dtype, 1, ignore_index);
}

}  // namespace headrace
