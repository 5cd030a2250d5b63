// SPDX-License-Identifier: Apache-2.0
// A CIFAR folder as hostile input. The first byte selects the variant; then comes the number of
// records, each made from two of the following bytes: its labels and its pixels. The rest are the
// names of the classes.
#include "headrace/formats/fuzz_format.h"
#include "headrace/storage/temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  if (size < 2) return 0;
  static const TemporaryFolder ten, hundred;
  const bool fine = data[0] & 1, cut_off = data[0] & 2, twice = data[0] & 4;
  const TemporaryFolder& folder = fine ? hundred : ten;
  const size_t records = std::min<size_t>(data[1] % 32, (size - 2) / 2);
  std::string batch;
  for (size_t i = 0; i < records; ++i) {
    const uint8_t label = data[2 + 2 * i], pixels = data[3 + 2 * i];
    if (fine) batch += static_cast<char>(label % 21);
    batch += static_cast<char>(label);
    batch += std::string(3072, static_cast<char>(pixels));
  }
  if (cut_off && !batch.empty()) batch.pop_back();
  const std::string names(reinterpret_cast<const char*>(data) + 2 + 2 * records,
                          size - 2 - 2 * records);
  folder.write(fine ? "train.bin" : "data_batch_1.bin", batch);
  folder.write(fine ? "test.bin" : "test_batch.bin", twice ? batch : "");
  folder.write(fine ? "fine_label_names.txt" : "batches.meta.txt", names);
  folder.write("coarse_label_names.txt", names);
  for (const char* split : {"train", "test"}) {
    open_and_read(folder.path(), "cifar", {{"split", std::string(split)}});
  }
  return 0;
}
