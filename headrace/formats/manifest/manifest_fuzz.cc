// SPDX-License-Identifier: Apache-2.0
// A manifest as hostile input, as CSV and as JSON lines, with both policies; every text is read.
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/formats/format.h"
#include "headrace/sources/source.h"
#include "headrace/storage/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const TemporaryFolder folder;
  const std::string path =
      folder.write("m.csv", std::string_view(reinterpret_cast<const char*>(data), size));
  for (const char* missing : {"error", "fill"}) {
    try {
      const SourcePtr source =
          open_source(path, {{"format", std::string("manifest")},
                             {"missing", std::string(missing)},
                             {"root", std::string("memory://none")}});  // no file is checked
      std::vector<bool> wanted;
      for (const Field& field : source->schema()) wanted.push_back(!field.encoded);
      std::vector<RecordData> out(1);
      for (int64_t i = 0; i < source->size(); ++i) {
        source->read(std::vector<int64_t>{i}, wanted, out);
        (void)source->key(i);
      }
    } catch (const Exception&) {
    }
  }
  return 0;
}
