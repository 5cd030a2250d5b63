// SPDX-License-Identifier: Apache-2.0
// Memory for the coefficients of a whole image, which libjpeg keeps while it reads a file of
// several scans. We allocate it ourselves, so that it is counted, and returned to the system when
// the image is done (Note [Why large memory is mapped]).
//
// Replaces libjpeg's virtual block arrays, with the same interface and all rows in memory. For one
// thread. `request` and `realize` report errors through cinfo's error_exit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdio>

#include "jpeglib.h"

namespace headrace {

class JpegArrays {
 public:
  JpegArrays() = default;
  ~JpegArrays() { release(); }
  JpegArrays(const JpegArrays&) = delete;
  JpegArrays& operator=(const JpegArrays&) = delete;

  jvirt_barray_ptr request(j_common_ptr cinfo, JDIMENSION blocks_wide, JDIMENSION rows,
                           JDIMENSION rows_at_once);
  // Allocates the requested arrays, zeroed; no more than cinfo->mem->max_memory_to_use.
  void realize(j_common_ptr cinfo);
  static JBLOCKARRAY access(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION first,
                            JDIMENSION count);
  void release();

 private:
  struct Array {
    JDIMENSION blocks_wide = 0, rows = 0, rows_at_once = 0;
    // The blocks, which libjpeg's vector code needs aligned; then a pointer to each row.
    void* memory = nullptr;
    JBLOCKROW* row_pointers() const {
      return reinterpret_cast<JBLOCKROW*>(static_cast<JBLOCKROW>(memory) +
                                          size_t{rows} * blocks_wide);
    }
    size_t bytes() const { return rows * (sizeof(JBLOCKROW) + blocks_wide * sizeof(JBLOCK)); }
  };
  std::array<Array, MAX_COMPONENTS> arrays_;
  size_t count_ = 0;
};

}  // namespace headrace
