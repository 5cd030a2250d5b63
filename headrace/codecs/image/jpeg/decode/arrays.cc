// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/image/jpeg/decode/arrays.h"

#include <new>

#include "headrace/base/pages.h"
#include "jerror.h"

namespace headrace {

jvirt_barray_ptr JpegArrays::request(j_common_ptr cinfo, JDIMENSION blocks_wide, JDIMENSION rows,
                                     JDIMENSION rows_at_once) {
  if (count_ == arrays_.size()) ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
  Array& array = arrays_[count_++];
  array = {blocks_wide, rows, rows_at_once};
  return reinterpret_cast<jvirt_barray_ptr>(&array);
}

void JpegArrays::realize(j_common_ptr cinfo) {
  size_t bytes = 0;
  for (size_t i = 0; i < count_; ++i) bytes += arrays_[i].bytes();
  const long most = cinfo->mem->max_memory_to_use;
  if (most > 0 && bytes > static_cast<size_t>(most)) ERREXIT(cinfo, JERR_NO_BACKING_STORE);
  bool refused = false;
  try {
    for (size_t i = 0; i < count_; ++i) {
      Array& array = arrays_[i];
      if (array.memory || array.rows == 0) continue;
      array.memory = map_pages(array.bytes());
      auto* blocks = static_cast<JBLOCKROW>(array.memory);
      for (JDIMENSION row = 0; row < array.rows; ++row) {
        array.row_pointers()[row] = blocks + size_t{row} * array.blocks_wide;
      }
    }
  } catch (const std::bad_alloc&) {
    refused = true;  // leave the handler before the longjmp
  }
  if (refused) ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
}

JBLOCKARRAY JpegArrays::access(j_common_ptr cinfo, jvirt_barray_ptr pointer, JDIMENSION first,
                               JDIMENSION count) {
  const Array& array = *reinterpret_cast<const Array*>(pointer);
  if (!array.memory || count > array.rows_at_once || first > array.rows ||
      count > array.rows - first) {
    ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
  }
  return array.row_pointers() + first;
}

void JpegArrays::release() {
  for (size_t i = 0; i < count_; ++i) {
    if (arrays_[i].memory) unmap_pages(arrays_[i].memory, arrays_[i].bytes());
    arrays_[i] = {};
  }
  count_ = 0;
}

}  // namespace headrace
