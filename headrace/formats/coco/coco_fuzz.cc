// SPDX-License-Identifier: Apache-2.0
// An annotation file as hostile input: opened in each way, and every record read.
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/formats/format.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

namespace {

using namespace headrace;

void read_all(const std::string& path, const std::map<std::string, ParamValue>& given) {
  try {
    const SourcePtr source = open_source(path, given);
    std::vector<bool> wanted(source->schema().size(), true);
    wanted[0] = false;  // the pictures, which do not exist
    std::vector<RecordData> out(1);
    for (int64_t i = 0; i < std::min<int64_t>(source->size(), 64); ++i) {
      out[0].max_bytes = size_t{1} << 20;
      source->read(std::vector<int64_t>{i}, wanted, out);
    }
  } catch (const Exception&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const TemporaryFolder folder;
  const std::string path =
      folder.write("a.json", std::string_view(reinterpret_cast<const char*>(data), size));
  const std::string format = "coco", images = folder.path(), drop = "drop";
  read_all(path, {{"format", format}, {"images", images}, {"masks", true}, {"orphans", drop}});
  read_all(path, {{"format", format},
                  {"images", images},
                  {"keypoints", true},
                  {"skip_empty", true},
                  {"min_size", 1.0},
                  {"category_ids", std::string("keep")}});
  return 0;
}
