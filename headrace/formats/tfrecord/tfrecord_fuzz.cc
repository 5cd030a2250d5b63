// SPDX-License-Identifier: Apache-2.0
// TFRecords as hostile input: any file, and any message inside valid frames, read with inferred and
// with given fields. A message's label must be the same whether the whole record is read or only
// the label.
#include <cstring>

#include "headrace/formats/fuzz_format.h"
#include "headrace/formats/tfrecord/tfrecord_frames.h"

namespace headrace {
namespace {

void put(const void* bytes, size_t count, std::vector<uint8_t>& out) {
  const auto* from = static_cast<const uint8_t*>(bytes);
  out.insert(out.end(), from, from + count);
}

void put_frame(std::span<const uint8_t> data, std::vector<uint8_t>& out) {
  const uint64_t length = data.size();
  uint8_t raw[8];
  std::memcpy(raw, &length, sizeof raw);
  const uint32_t of_length = masked_crc32c(raw), of_data = masked_crc32c(data);
  put(raw, sizeof raw, out);
  put(&of_length, sizeof of_length, out);
  put(data.data(), data.size(), out);
  put(&of_data, sizeof of_data, out);
}

// Compares the label column with the records' labels, after the last one was read.
class Labels {
 public:
  void look(const Source& source, const RecordData& record) {
    good_ = good_ && record.result.has_value();
    for (size_t field = 0; field < source.schema().size() && good_; ++field) {
      if (source.schema()[field].name == "label") labels_.push_back(record.fields[field].scalar);
    }
    if (!good_ || source.size() != static_cast<int64_t>(labels_.size())) return;
    const std::vector<int64_t> column = source.integer_column("label");
    if (!column.empty() && column != labels_) std::abort();
  }

 private:
  std::vector<int64_t> labels_;
  bool good_ = true;
};

void use(const std::string& path, const std::map<std::string, ParamValue>& arguments) {
  Labels labels;
  open_and_read(path, "tfrecord", arguments,
                {.records = 50,
                 .record_bytes = size_t{1} << 20,
                 .look = [&](const Source& source, const RecordData& record) {
                   labels.look(source, record);
                 }});
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  const std::span<const uint8_t> input(data + 1, size - 1);
  std::vector<uint8_t> bytes;
  if (data[0] % 4 == 0) {
    bytes.assign(input.begin(), input.end());
  } else {  // one to three records
    const size_t records = data[0] % 4, part = input.size() / records;
    for (size_t i = 0; i < records; ++i) put_frame(input.subspan(i * part, part), bytes);
  }
  const std::string path = file_of(bytes);
  using Texts = std::vector<std::string>;
  use(path, {});
  use(path, {{"content", std::string("example")}, {"missing", std::string("empty")}});
  use(path, {{"fields", Texts{"label=l:int64[]", "t:text", "f:float32[-1]", "u:uint8[-1,2]",
                              "i:int64[-1]", "image=e:image"}},
             {"label_offset", int64_t{-1}}});
  return 0;
}
