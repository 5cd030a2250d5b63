// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_dataset.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "headrace/base/text.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

constexpr uint64_t kMaxChunkBytes = uint64_t{256} << 20;
constexpr uint64_t kMaxRowBytes = uint64_t{2} << 30;
// Zeros compress a thousandfold, and unwritten data takes no space. A higher ratio means that the
// declared size is bogus.
constexpr uint64_t kMaxRatio = 4096;
constexpr uint64_t kNeverTooMuch = uint64_t{64} << 20;

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

// Limit for sizes, so that sums cannot overflow.
bool multiply(uint64_t& product, uint64_t by) {
  return !__builtin_mul_overflow(product, by, &product) && product <= INT64_MAX;
}

}  // namespace

// Rows [begin, begin + rows) of a chunk, and their position in the requested rows.
struct Hdf5Dataset::Piece {
  uint64_t cell = 0;  // index in the grid
  uint64_t begin = 0, rows = 0;
  uint64_t to = 0;           // position of the first row in the requested rows
  std::vector<uint64_t> at;  // chunk coordinates along the other dimensions
};

Hdf5Outline hdf5_outline(const Hdf5File& file, std::string path, uint64_t address) {
  try {
    const Hdf5Object object = Hdf5Object::read(file, address);
    return {path, address, hdf5_space(file, object), hdf5_type(file, object)};
  } catch (const Exception& exception) {
    Error error = exception.error();
    if (error.where.member.empty()) error.where.member = path;
    throw Exception(std::move(error));
  }
}

Hdf5Dataset::Hdf5Dataset(const Hdf5File& file, const Hdf5Outline& outline, Hdf5ChunkCache& cache)
    : file_(file),
      cache_(cache),
      id_(next_id()),
      path_(outline.path),
      space_(outline.space),
      type_(outline.type) {
  try {
    const Hdf5Object object = Hdf5Object::read(file, outline.address);
    refuse(object);
    layout_ = hdf5_layout(file, *object.find(Hdf5MessageType::kLayout));
    filters_ = hdf5_filters(file, object);
    fill_ = hdf5_fill_value(file, object);
    if (layout_.what == Hdf5Layout::Class::kVirtual) {
      throw Exception(hdf5_leads_outside(file.file(), "a virtual dataset"));
    }
    check_sizes();
    if (layout_.what == Hdf5Layout::Class::kChunked) open_chunks();
  } catch (const Exception& exception) {
    Error error = exception.error();
    if (error.where.member.empty()) error.where.member = path_;
    throw Exception(std::move(error));
  }
}

void Hdf5Dataset::refuse(const Hdf5Object& object) {
  if (object.find(Hdf5MessageType::kExternalFiles)) {
    throw Exception(hdf5_leads_outside(file_.file(), "its data is stored in other files"));
  }
  if (!object.find(Hdf5MessageType::kLayout)) {
    file_.damaged(object.address(), "an object that is not a dataset");
  }
  if (space_.null || space_.sizes.empty()) {
    throw Exception(hdf5_unsupported(file_.file(), "a scalar dataset, without rows",
                                     "exclude it with fields=[...]"));
  }
  if (type_.what == Hdf5Type::Class::kRefused) {
    throw Exception(hdf5_unsupported(file_.file(), type_.refusal,
                                     "exclude it with fields=[...], or read it through h5py with "
                                     "trusted=True"));
  }
}

void Hdf5Dataset::check_sizes() {
  uint64_t row = type_.bytes;
  for (size_t i = 1; i < space_.sizes.size(); ++i) {
    row_shape_.push_back(static_cast<int64_t>(space_.sizes[i]));
    if (space_.sizes[i] > INT64_MAX || !multiply(row, space_.sizes[i]) || row > kMaxRowBytes) {
      throw Exception(hdf5_too_large(file_.file(), "a record has more than 2 GiB",
                                     "store it as several records"));
    }
  }
  if (row == 0) {
    throw Exception(hdf5_unsupported(file_.file(), "records without any element",
                                     "exclude it with fields=[...]"));
  }
  row_shape_.insert(row_shape_.end(), type_.inner.begin(), type_.inner.end());
  row_bytes_ = row;
  uint64_t all = row;
  const uint64_t size = file_.file().size();
  if (space_.sizes[0] > INT64_MAX || !multiply(all, space_.sizes[0]) ||
      (all > kNeverTooMuch && all / kMaxRatio > size)) {
    throw Exception(hdf5_too_large(file_.file(),
                                   "a dataset of " + std::to_string(space_.sizes[0]) + " rows of " +
                                       with_commas(static_cast<int64_t>(row)) +
                                       " bytes in a file of " +
                                       with_commas(static_cast<int64_t>(size)) + " bytes",
                                   "if the dataset is mostly unwritten, shrink it with h5py's "
                                   "resize"));
  }
  if (layout_.what == Hdf5Layout::Class::kCompact && layout_.data.size() != all) {
    file_.damaged(kHdf5Undefined, "a dataset of " + std::to_string(all) + " bytes stores " +
                                      std::to_string(layout_.data.size()));
  }
  if (layout_.what == Hdf5Layout::Class::kContiguous && layout_.address != kHdf5Undefined) {
    if (layout_.bytes < all || !file_.holds(layout_.address, all)) {
      file_.damaged(layout_.address, "a dataset of " + std::to_string(all) +
                                         " bytes is not inside the file of " +
                                         std::to_string(size) + " bytes");
    }
  }
}

void Hdf5Dataset::open_chunks() {
  if (layout_.chunk.size() != space_.sizes.size() || layout_.element_bytes != type_.bytes) {
    file_.damaged(layout_.address, "chunks whose number of dimensions differs from the dataset's");
  }
  if (const std::string filter = unknown_hdf5_filter(filters_); !filter.empty()) {
    throw Exception(hdf5_unsupported(file_.file(), "chunks are compressed with " + filter,
                                     "write it with compression='gzip' or 'lzf', or read "
                                     "it through h5py with trusted=True"));
  }
  chunk_row_bytes_ = type_.bytes;
  bool fits = true;
  for (size_t i = 1; i < layout_.chunk.size(); ++i) {
    fits = fits && multiply(chunk_row_bytes_, layout_.chunk[i]);
  }
  chunk_bytes_ = chunk_row_bytes_;
  fits = fits && multiply(chunk_bytes_, layout_.chunk[0]);
  if (!fits || chunk_bytes_ > kMaxChunkBytes) {
    throw Exception(hdf5_too_large(file_.file(), "chunks of more than 256 MiB",
                                   "write it with smaller chunks, such as one record each"));
  }
  index_ = Hdf5ChunkIndex(file_, layout_, space_, chunk_bytes_, !filters_.empty());
  for (size_t i = 1; i < index_.grid().size(); ++i) chunks_in_row_ *= index_.grid()[i];
}

int64_t Hdf5Dataset::offset_of(uint64_t row) const {
  if (layout_.what == Hdf5Layout::Class::kContiguous && layout_.address != kHdf5Undefined) {
    return file_.offset_of(layout_.address + row * row_bytes_);
  }
  if (layout_.what != Hdf5Layout::Class::kChunked) return -1;
  uint64_t cell = row / layout_.chunk[0] * chunks_in_row_;
  const std::optional<Hdf5Chunk> chunk = index_.next(cell, cell + chunks_in_row_);
  return chunk ? file_.offset_of(chunk->address) : -1;
}

void Hdf5Dataset::add_to(Fingerprint& print) const {
  print.add(path_);
  for (uint64_t size : space_.sizes) print.add(size);
  print.add(static_cast<uint64_t>(type_.what));
  print.add(name_of(type_.dtype));
  print.add(uint64_t{type_.bytes} << 1 | type_.big_endian);
  print.add(static_cast<uint64_t>(layout_.what));
  print.add(layout_.address);
  for (uint64_t size : layout_.chunk) print.add(size);
  for (const Hdf5Filter& filter : filters_) print.add(uint64_t{filter.id});
  print.add(text_from_bytes(layout_.data));
  index_.add_to(print);
}

void Hdf5Dataset::fill(std::span<uint8_t> out) const {
  if (fill_.size() != type_.bytes) {
    std::memset(out.data(), 0, out.size());
    return;
  }
  for (size_t at = 0; at + fill_.size() <= out.size(); at += fill_.size()) {
    std::memcpy(out.data() + at, fill_.data(), fill_.size());
  }
}

Result<void> Hdf5Dataset::read(uint64_t first, uint64_t count, std::span<uint8_t> out) const {
  if (out.empty()) return {};
  Result<void> result;
  switch (layout_.what) {
    case Hdf5Layout::Class::kCompact:
      std::memcpy(out.data(), layout_.data.data() + first * row_bytes_, out.size());
      break;
    case Hdf5Layout::Class::kContiguous:
      if (layout_.address == kHdf5Undefined) {
        fill(out);
      } else {
        result = file_.read(layout_.address + first * row_bytes_, out);
      }
      break;
    case Hdf5Layout::Class::kChunked:
      result = read_chunks(first, count, out);
      break;
    case Hdf5Layout::Class::kVirtual:
      break;
  }
  if (!result && result.error().where.member.empty()) result.error().where.member = path_;
  return result;
}

Result<void> Hdf5Dataset::read_chunks(uint64_t first, uint64_t count,
                                      std::span<uint8_t> out) const {
  const uint64_t end = first + count;
  Piece piece;
  for (uint64_t row = first; row < end; row += piece.rows) {
    const uint64_t slab = row / layout_.chunk[0];  // chunks with these rows
    piece.begin = row % layout_.chunk[0];
    piece.rows = std::min(layout_.chunk[0] - piece.begin, end - row);
    piece.to = row - first;
    if (!index_.is_full()) {
      fill(out.subspan(piece.to * row_bytes_, piece.rows * row_bytes_));
    }
    const uint64_t cells_end = (slab + 1) * chunks_in_row_;
    for (piece.cell = slab * chunks_in_row_; piece.cell < cells_end; ++piece.cell) {
      const std::optional<Hdf5Chunk> chunk = index_.next(piece.cell, cells_end);
      if (!chunk) break;
      uint64_t rest = piece.cell;
      piece.at.resize(layout_.chunk.size() - 1);
      for (size_t axis = piece.at.size(); axis-- > 0; rest /= index_.grid()[axis + 1]) {
        piece.at[axis] = rest % index_.grid()[axis + 1];
      }
      if (Result<void> read = read_piece(piece, *chunk, out); !read) return read;
    }
  }
  return {};
}

// Whether the chunk extends past the dataset's end, and such chunks are stored unfiltered.
bool Hdf5Dataset::is_plain(const Piece& piece) const {
  if (filters_.empty()) return true;
  if (!layout_.edges_unfiltered) return false;
  const uint64_t slab = piece.cell / chunks_in_row_;
  if ((slab + 1) * layout_.chunk[0] > space_.sizes[0]) return true;
  for (size_t i = 0; i < piece.at.size(); ++i) {
    if ((piece.at[i] + 1) * layout_.chunk[i + 1] > space_.sizes[i + 1]) return true;
  }
  return false;
}

Result<void> Hdf5Dataset::read_piece(const Piece& piece, const Hdf5Chunk& chunk,
                                     std::span<uint8_t> out) const {
  if (!is_plain(piece)) return read_packed(piece, chunk, out);
  const uint64_t skipped = piece.begin * chunk_row_bytes_, bytes = piece.rows * chunk_row_bytes_;
  if (chunk.bytes < skipped + bytes) {
    return hdf5_damaged(file_.file(), file_.offset_of(chunk.address),
                        "a chunk of " + std::to_string(chunk.bytes) + " bytes is too small");
  }
  if (is_rows()) {
    return file_.read(chunk.address + skipped, out.subspan(piece.to * row_bytes_, bytes));
  }
  std::vector<uint8_t> rows(bytes);
  if (Result<void> read = file_.read(chunk.address + skipped, rows); !read) return read;
  copy_piece(piece, rows.data(), out);
  return {};
}

Result<void> Hdf5Dataset::read_packed(const Piece& piece, const Hdf5Chunk& chunk,
                                      std::span<uint8_t> out) const {
  if (is_rows() && piece.rows == layout_.chunk[0]) {
    return unpack(chunk, out.subspan(piece.to * row_bytes_, chunk_bytes_));
  }
  return cache_.get(
      id_, piece.cell, chunk_bytes_, [&](std::span<uint8_t> to) { return unpack(chunk, to); },
      [&](std::span<const uint8_t> bytes) {
        copy_piece(piece, bytes.data() + piece.begin * chunk_row_bytes_, out);
      });
}

Result<void> Hdf5Dataset::unpack(const Hdf5Chunk& chunk, std::span<uint8_t> out) const {
  thread_local Buffer stored;
  stored.resize(chunk.bytes);
  if (Result<void> read = file_.read(chunk.address, {stored.data(), chunk.bytes}); !read) {
    return read;
  }
  std::string wrong = undo_hdf5_filters(filters_, chunk.mask, type_.bytes, stored.bytes(), out);
  constexpr size_t kKept = size_t{8} << 20;
  if (stored.capacity() > kKept) stored.free();
  if (wrong.empty()) return {};
  return hdf5_damaged(file_.file(), file_.offset_of(chunk.address), std::move(wrong));
}

// `rows`: the piece's, each as wide as a chunk. Chunks may extend past the dataset's end.
void Hdf5Dataset::copy_piece(const Piece& piece, const uint8_t* rows,
                             std::span<uint8_t> out) const {
  const size_t axes = piece.at.size();
  uint8_t* const to = out.data() + piece.to * row_bytes_;
  if (is_rows()) {
    std::memcpy(to, rows, piece.rows * row_bytes_);
    return;
  }
  // Along a row's axes: size of the part inside, its first element, strides in bytes.
  std::vector<uint64_t> counts(axes), chunk_steps(axes), row_steps(axes), done(axes, 0);
  uint64_t chunk_step = type_.bytes, row_step = type_.bytes, begin = 0;
  for (size_t i = axes; i-- > 0;) {
    const uint64_t size = space_.sizes[i + 1], chunk = layout_.chunk[i + 1];
    const uint64_t first = piece.at[i] * chunk;
    counts[i] = std::min(chunk, size - first);
    chunk_steps[i] = chunk_step, row_steps[i] = row_step;
    begin += first * row_step;
    chunk_step *= chunk, row_step *= size;
  }
  const size_t run = counts[axes - 1] * type_.bytes;
  for (uint64_t row = 0; row < piece.rows; ++row) {
    std::fill(done.begin(), done.end(), 0);
    for (bool more = true; more;) {
      uint64_t from = row * chunk_row_bytes_, place = row * row_bytes_ + begin;
      for (size_t i = 0; i + 1 < axes; ++i) {
        from += done[i] * chunk_steps[i], place += done[i] * row_steps[i];
      }
      std::memcpy(to + place, rows + from, run);
      more = false;
      for (size_t i = axes - 1; i-- > 0;) {
        if (++done[i] < counts[i]) {
          more = true;
          break;
        }
        done[i] = 0;
      }
    }
  }
}

}  // namespace headrace
