// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/left_to_device.h"

#include "headrace/finish/coded_rows.h"

namespace headrace {

size_t slot_row_bytes(const Output& output, size_t number, const LeftToDevice& left) {
  if (left.decodes(number)) return CodedRows::slot_row_bytes(output.state.shape, left.coded_row);
  return left.finishes(number) ? size_t(element_count(output.state.shape))
                               : output.bytes_per_record;
}

}  // namespace headrace
