// SPDX-License-Identifier: Apache-2.0
// The index of a TFRecord file as hostile input, next to a file that may be hostile, too: the first
// byte is the length of the index in units of 4 bytes, then come the index and the file. Accepted
// extents must be consecutive and cover the whole file.
#include "headrace/formats/tfrecord/tfrecord_frames.h"
#include "headrace/sources/fuzz_source.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 1) return 0;
  const size_t length = std::min<size_t>(size - 1, size_t{data[0]} * 4);
  const std::string_view index(reinterpret_cast<const char*>(data + 1), length);
  Result<File> file = File::open(file_of({data + 1 + length, size - 1 - length}));
  if (!file) std::abort();
  ContainerIndex out;
  const Result<bool> taken = take_tfrecord_index(*file, index, out);
  if (!taken) std::abort();
  out.records.end_file();
  uint64_t end = 0;
  for (int64_t i = 0; i < out.records.size(); ++i) {
    if (!*taken || out.records[i].offset != end) std::abort();
    end += out.records[i].bytes;
  }
  if (*taken && end != file->size()) std::abort();
  return 0;
}
