// SPDX-License-Identifier: Apache-2.0
// A dataset of an HDF5 file: its shape, its type, and the bytes of its rows after undoing their
// filters.
//
// Opening throws Exception; reading returns Result and is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/formats/hdf5/hdf5_chunk_cache.h"
#include "headrace/formats/hdf5/hdf5_chunks.h"
#include "headrace/formats/hdf5/hdf5_messages.h"

namespace headrace {

// Name, shape and type, without reading the data.
struct Hdf5Outline {
  std::string path;
  uint64_t address = kHdf5Undefined;
  Hdf5Space space = {};
  Hdf5Type type = {};
};
Hdf5Outline hdf5_outline(const Hdf5File& file, std::string path, uint64_t address);

class Hdf5Dataset {
 public:
  // Locates its data. Throws Exception HR0489 for damage, HR0490 for unsupported types, filters and
  // layouts, HR0493 for sizes that the file cannot contain, HR0494 for data in another file.
  // REQUIRES: `file` and `cache` outlive the dataset.
  Hdf5Dataset(const Hdf5File& file, const Hdf5Outline& outline, Hdf5ChunkCache& cache);

  const std::string& path() const { return path_; }
  const Hdf5Type& type() const { return type_; }
  uint64_t rows() const { return space_.sizes[0]; }
  // Shape of a row: the dimensions after the first, then those of the elements.
  const Shape& row_shape() const { return row_shape_; }
  uint64_t row_bytes() const { return row_bytes_; }
  // Bytes that must be unpacked together to read a row; 0: rows are stored unfiltered.
  uint64_t packed_bytes() const { return filters_.empty() ? 0 : chunk_bytes_; }

  // Reads rows [first, first + count) in the file's byte order. REQUIRES: they exist, and `out` has
  // their size.
  Result<void> read(uint64_t first, uint64_t count, std::span<uint8_t> out) const;
  // The file offset of a row, for messages; -1 if the row is not contiguous in the file.
  int64_t offset_of(uint64_t row) const;
  void add_to(Fingerprint& print) const;

 private:
  struct Piece;  // the requested rows of a chunk
  void refuse(const Hdf5Object& object);
  void check_sizes();
  void open_chunks();
  void fill(std::span<uint8_t> out) const;
  Result<void> read_chunks(uint64_t first, uint64_t count, std::span<uint8_t> out) const;
  Result<void> read_piece(const Piece& piece, const Hdf5Chunk& chunk, std::span<uint8_t> out) const;
  Result<void> read_packed(const Piece& piece, const Hdf5Chunk& chunk,
                           std::span<uint8_t> out) const;
  Result<void> unpack(const Hdf5Chunk& chunk, std::span<uint8_t> out) const;
  // Whether a chunk consists of whole rows.
  bool is_rows() const { return chunk_row_bytes_ == row_bytes_ && chunks_in_row_ == 1; }
  bool is_plain(const Piece& piece) const;
  void copy_piece(const Piece& piece, const uint8_t* rows, std::span<uint8_t> out) const;

  const Hdf5File& file_;
  Hdf5ChunkCache& cache_;
  uint64_t id_;  // id of the dataset in the cache
  std::string path_;
  Hdf5Space space_;
  Hdf5Type type_;
  Hdf5Layout layout_;
  std::vector<Hdf5Filter> filters_;
  std::vector<uint8_t> fill_;  // fill value of an element; empty: zeros
  Shape row_shape_;
  uint64_t row_bytes_ = 0;
  // kChunked:
  Hdf5ChunkIndex index_;
  uint64_t chunk_bytes_ = 0, chunk_row_bytes_ = 0;
  uint64_t chunks_in_row_ = 1;
};

// --- Filters of stored chunks (hdf5_filters.cc) ---
// May be called from any thread; each thread has its own scratch memory.

// The first unknown filter of a list ("blosc (filter 32001)"). Empty: all are supported.
std::string unknown_hdf5_filter(const std::vector<Hdf5Filter>& filters);

// Undoes the filters of a stored chunk, the last one first; those whose bit is set in `mask` were
// skipped when it was written. `out` has the chunk's size, and is filled completely. Returns the
// error in one line, empty if there is none. No filter writes more than the chunk and a few bytes.
std::string undo_hdf5_filters(const std::vector<Hdf5Filter>& filters, uint32_t mask,
                              size_t element_bytes, std::span<const uint8_t> stored,
                              std::span<uint8_t> out);

}  // namespace headrace
