// SPDX-License-Identifier: Apache-2.0
#include "headrace/executor/memory/record_bytes.h"

#include <algorithm>

#include "headrace/image/render_task.h"

namespace headrace {

RecordBytes::RecordBytes(const Plan& plan)
    : before_end_(intermediate_memory(plan)), crosses_to_python_(plan.has_python_steps()) {}

// Decoding happens once, for the first step on pixels. Afterwards a step's input and output are
// held at once, and for Python steps a copy of each.
size_t RecordBytes::of_one(const Record& record) const {
  size_t bytes = 0;
  for (size_t i = 0; i < record.fields.size(); ++i) {
    const Recipe& picture = record.fields[i].picture;
    bytes += before_end_.bytes_of(record.fields[i].audio);
    if (const Video& video = record.fields[i].video; video.track) {
      bytes += before_end_.bytes_of(video, i);
    }
    if (picture.channels() == 0) continue;
    const size_t pixels = before_end_.bytes_of(picture);
    const size_t copies = crosses_to_python_ ? 4 : 2;
    bytes += std::max(copies * pixels + before_end_.scratch_bytes(picture),
                      pixels + working_bytes(picture));
    const int views = before_end_.views[i];  // steps run on one view at a time
    if (views > 1) bytes += size_t(views - 1) * pixels;
  }
  return bytes;
}

size_t RecordBytes::until_written(const Record& record) const {
  size_t bytes = of_one(record);
  for (const Record& partner : record.partners) bytes += of_one(partner);
  return bytes;
}

size_t made_bytes(const Record& record) {
  size_t bytes = 0;
  for (const FieldValue& value : record.fields) bytes += value.owned ? value.owned->size() : 0;
  return bytes;
}

size_t working_bytes(const Record& record) {
  size_t bytes = made_bytes(record);
  for (const FieldValue& value : record.fields) {
    bytes += working_bytes(value.picture) + value.audio.header.working_bytes;
  }
  return bytes;
}

size_t encoded_bytes(const RecordData& data) {
  size_t bytes = 0;
  data.each_buffer([&](const Buffer& buffer) { bytes += buffer.size(); });
  return bytes;
}

}  // namespace headrace
