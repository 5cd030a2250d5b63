// SPDX-License-Identifier: Apache-2.0
// The destination of a pack: where the pack is written, and how it is moved into place.
//
// A pack is written under a name that ends in .partial, as one file or as a folder of shards, and
// locked against other processes meanwhile. An existing file is only replaced if it is a pack, and
// is moved aside first. For one thread.
#pragma once

#include <cstdint>
#include <string>

namespace headrace {

class PackPlace {
 public:
  // Throws HR0446 if the destination exists and must not be replaced, HR0447, HR0448.
  PackPlace(std::string out, int shards, bool overwrite);
  ~PackPlace();
  PackPlace(const PackPlace&) = delete;
  PackPlace& operator=(const PackPlace&) = delete;

  // The path to write a shard to. If there is only one, its file is also the lock.
  std::string shard(uint32_t number) const;
  // Repeats the check for HR0446; called while the lock is held, because another process may have
  // been faster.
  void check() const;
  // The last step: replaces an existing pack with the new one. Throws HR0446, HR0457. REQUIRES: all
  // shards are complete, and the lock is still held.
  void take() const;

 private:
  void check_partial() const;
  void remove_other_form() const;

  const std::string out_, partial_;
  const int shards_;
  const bool overwrite_;
  int descriptor_ = -1;  // lock of the folder of shards
};

}  // namespace headrace
