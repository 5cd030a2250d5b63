// SPDX-License-Identifier: Apache-2.0
// Token files as hostile input: a .npy or .bin, or the .idx of a .bin. The first byte says which,
// the second gives the size of the .bin.
#include "headrace/formats/fuzz_format.h"
#include "headrace/storage/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  static const TemporaryFolder folder;
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const bool index = data[0] % 2 == 0;
  const std::string bin = folder.write("a.bin", index ? std::string(data[1], '\1') : bytes);
  const std::string path = index ? folder.write("a.idx", bytes) : bin;
  if (!index) std::remove((folder / "a.idx").c_str());
  open_and_read(path, "tokens", {{"window", int64_t{3}}, {"last", std::string("pad")}});
  open_and_read(path, "tokens", {{"window", std::monostate()}, {"eos", int64_t{1}}});
  return 0;
}
