// SPDX-License-Identifier: Apache-2.0
// The destination of a pack, and how the pack is moved into place.
//
// It is written under the name that ends in .partial, as one file or as a folder of shards, to
// which no other process writes. What stands at the place goes only when it is a pack, and is moved
// aside first. Of one thread.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

class PackPlace {
 public:
  // Throws HR0446 when something stands there that may not be replaced, HR0447, HR0448.
  PackPlace(std::string out, int shards, bool overwrite);
  ~PackPlace();
  PackPlace(const PackPlace&) = delete;
  PackPlace& operator=(const PackPlace&) = delete;

  // Where to write a shard. A single one holds the lock of the place by its own file.
  std::string shard(uint32_t number) const;
  // HR0446 again: to be asked when the lock is held, as another one may have been quicker.
  void check() const;
  // The last step: what stood there goes, the new pack takes its name. Throws HR0446, HR0457.
  // REQUIRES: all shards are whole, and the lock is still held.
  void take() const;

 private:
  void check_partial() const;
  void clear_other() const;

  const std::string out_, partial_;
  const int shards_;
  const bool overwrite_;
  int descriptor_ = -1;  // of the folder of shards
};

}  // namespace headrace
