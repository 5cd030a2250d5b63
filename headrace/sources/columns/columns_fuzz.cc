// SPDX-License-Identifier: Apache-2.0
// A table from the host (Arrow's buffers) as hostile input: offsets, valid bits and
// data of two parts, each in memory of exactly its size, the second one's data in a file or not.
#include <cstring>
#include <memory>

#include "headrace/sources/columns/columns.h"
#include "headrace/sources/fuzz_source.h"

namespace headrace {
namespace {

using Memory = std::shared_ptr<uint8_t[]>;

// This many bytes of the input, then zeros, in memory of exactly that size, so that reads beyond it
// are detected.
Memory taken(std::span<const uint8_t>& input, size_t bytes) {
  Memory memory(new uint8_t[bytes]());
  const size_t count = std::min(bytes, input.size());
  std::copy_n(input.begin(), count, memory.get());
  input = input.subspan(count);
  return memory;
}

void use(std::span<const uint8_t> input) {
  const uint8_t form = input[0];
  const auto rows = std::array<int64_t, 2>{input[1] % 16, input[2] % 16};
  const size_t data_bytes = input[3];
  input = input.subspan(4);
  const bool wide = form & 1;
  std::vector<Memory> owner;
  BlobColumn column{.parts = {}, .dtype = form & 2 ? DType::kInt16 : DType::kUInt8};
  for (const int64_t count : rows) {
    const int64_t first_bit = form >> 4;
    owner.push_back(taken(input, static_cast<size_t>(count + 1) * (wide ? 8 : 4)));
    const Memory offsets = owner.back();
    owner.push_back(taken(input, static_cast<size_t>(first_bit + count + 7) / 8));
    const Memory valid = owner.back();
    owner.push_back(taken(input, data_bytes));
    column.parts.push_back({.data = owner.back().get(),
                            .data_bytes = data_bytes,
                            .offsets = offsets.get(),
                            .wide = wide,
                            .count = count,
                            .valid = form & 4 ? valid.get() : nullptr,
                            .first_bit = first_bit});
  }
  if (form & 8) {
    column.parts[1].data = nullptr;
    column.parts[1].file = 0;
    column.files = std::make_shared<const FileSet>(
        std::vector<std::string>{file_of({owner[5].get(), data_bytes})});
  }
  column.owner = std::make_shared<std::vector<Memory>>(std::move(owner));
  std::vector<Column> columns;
  columns.push_back({.name = "x",
                     .values = std::move(column),
                     .kind = form & 2    ? FieldKind::kTensor
                             : form & 16 ? FieldKind::kText
                                         : FieldKind::kBytes});
  try {
    read_all(*records(std::move(columns)));
  } catch (const Exception&) {
  }
}

}  // namespace
}  // namespace headrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size >= 4) headrace::use({data, size});
  return 0;
}
