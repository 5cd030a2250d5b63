// SPDX-License-Identifier: Apache-2.0
#include "headrace/kernels/device_jpeg/decode_batch.h"

#include "headrace/kernels/batch/memory_sections.h"
#include "headrace/kernels/batch/queue.h"

namespace headrace {
namespace {

void take_upload(MemorySections& sections, const DeviceJpegSizes& sizes, DeviceJpegMemory& at) {
  const auto bytes_of = [](int64_t count, size_t size) { return count * int64_t(size); };
  sections.take(at.images, bytes_of(sizes.images, sizeof(DeviceImage)));
  sections.take(at.codes, bytes_of(sizes.codes, sizeof(DeviceCode)));
  sections.take(at.quantizations, bytes_of(sizes.quantizations, 64 * sizeof(int16_t)));
  sections.take(at.places, sizeof(WalkTables::place));
  sections.take(at.row_jobs, bytes_of(sizes.row_jobs, sizeof(RowJob)));
  sections.take(at.walk_groups, bytes_of(sizes.walk_groups, sizeof(WalkGroup)));
  sections.take(at.block_jobs, bytes_of(sizes.block_jobs, sizeof(PieceJob)));
  for (size_t kind = 0; kind < kColorKinds; ++kind) {
    sections.take(at.pixel_jobs[kind], bytes_of(sizes.pixel_jobs[kind], sizeof(PieceJob)));
  }
  sections.take(at.streams, bytes_of(sizes.stream_words, sizeof(uint32_t)));
}

void take_lasting(MemorySections& sections, const DeviceJpegSizes& sizes, DeviceJpegMemory& at) {
  sections.take(at.tables, sizes.images * int64_t{sizeof(WalkTables)});
  sections.take(at.samples, sizes.sample_bytes);
  sections.take(at.refused, flag_bytes(sizes));
}

void take_scratch(MemorySections& sections, const DeviceJpegSizes& sizes, DeviceJpegMemory& at) {
  take_lasting(sections, sizes, at);
  sections.take(at.coefficients, sizes.blocks * 128);
}

}  // namespace

int64_t flag_bytes(const DeviceJpegSizes& sizes) { return (sizes.images + 15) / 16 * 16; }

int64_t upload_bytes(const DeviceJpegSizes& sizes) {
  MemorySections sections(nullptr);
  DeviceJpegMemory nowhere;
  take_upload(sections, sizes, nowhere);
  return sections.bytes();
}

int64_t scratch_bytes(const DeviceJpegSizes& sizes) {
  MemorySections sections(nullptr);
  DeviceJpegMemory nowhere;
  take_scratch(sections, sizes, nowhere);
  return sections.bytes();
}

int64_t lasting_bytes(const DeviceJpegSizes& sizes) {
  MemorySections sections(nullptr);
  DeviceJpegMemory nowhere;
  take_lasting(sections, sizes, nowhere);
  return sections.bytes();
}

DeviceJpegMemory place(const DeviceJpegSizes& sizes, uint8_t* upload, uint8_t* scratch,
                       uint8_t* out) {
  DeviceJpegMemory at{.out = out};
  MemorySections from(upload), between(scratch);
  take_upload(from, sizes, at);
  take_scratch(between, sizes, at);
  return at;
}

void queue_decoding(Stream& stream, const DeviceJpegSizes& sizes, const DeviceJpegMemory& at) {
  for_each_kernel(sizes, at, [&](const auto& kernel) { queue(stream, kernel); });
}

}  // namespace headrace
