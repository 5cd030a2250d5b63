// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/device_work.h"

#include "headrace/finish/coded_rows.h"

namespace headrace {

size_t slot_row_bytes(const Output& output, size_t number, const DeviceWork& left) {
  if (left.decodes(number)) return CodedRows::slot_row_bytes(output.state.shape, left.coded_row);
  return left.finishes(number) ? size_t(element_count(output.state.shape))
                               : output.bytes_per_record;
}

void mark_for_device(Record& record, const DeviceDecoding& log) {
  if (!log.trusts(record.index)) return;
  for (FieldValue& value : record.fields) {
    if (value.kind != FieldKind::kImage) continue;
    const EncodedPicture* const picture = value.picture.encoded();
    if (picture && CodedRows::can_know_rows(*picture)) value.picture.leave_to_device();
  }
}

}  // namespace headrace
