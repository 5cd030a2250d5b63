// SPDX-License-Identifier: Apache-2.0
// Pieces that several records need (FilePiece::shared): each piece is requested once, and stays in
// memory, shared, as long as any record that is read ahead has it. Two versions of a file have
// different pieces. Not thread-safe: ReadAhead::mutex_ protects it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/storage/storage.h"

namespace headrace {

class SharedPieces {
 public:
  struct Found {
    bool is_new = false;                  // the record has to request it
    std::shared_ptr<Buffer> memory = {};  // if it is there; shared: by its records
  };
  // A record needs this piece. If it is neither new nor there, arrived() will return the record.
  Found find(const FilePiece& piece, int64_t record);
  // The piece has arrived; or not, with null: the next record that needs it has to request it.
  // Returns the records that wait for it. Does not allocate.
  std::vector<int64_t> arrived(const FilePiece& piece, const std::shared_ptr<Buffer>& memory);

  size_t size() const { return pieces_.size(); }

 private:
  // Refers to the path of a piece, or to that of a Piece of the map.
  struct Place {
    std::string_view path;
    uint64_t offset, bytes;
    FileIdentity version;
    auto key() const {
      return std::tuple(path, offset, bytes, version.device, version.inode, version.size,
                        version.modified_ns);
    }
    bool operator<(const Place& other) const { return key() < other.key(); }
  };
  struct Piece {
    std::string path;
    std::weak_ptr<Buffer> memory = {};
    bool under_way = true;
    std::vector<int64_t> waiting = {};
    bool is_gone() const { return !under_way && memory.expired(); }
  };
  static Place place_of(const FilePiece& piece, std::string_view path) {
    return {path, piece.offset, piece.bytes, piece.known.value_or(FileIdentity{})};
  }
  void drop_gone();

  std::map<Place, std::unique_ptr<Piece>> pieces_;
  size_t drop_at_ = 64;  // size at which those that are gone are dropped
};

}  // namespace headrace
