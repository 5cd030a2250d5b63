// SPDX-License-Identifier: Apache-2.0
// A zip archive of arrays as hostile input, with its members read as arrays and checked by their
// CRC.
#include "headrace/formats/arrays/zip_directory.h"
#include "headrace/formats/fuzz_format.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  const std::string path = file_of({data, size});
  const Result<File> file = File::open(path);
  if (!file) std::abort();
  if (const Result<std::vector<ZipMember>> members = read_zip_directory(*file)) {
    Buffer out;
    for (const ZipMember& member : *members) (void)read_zip_member(*file, member, out);
  }
  open_and_read(path, "npz");
  return 0;
}
