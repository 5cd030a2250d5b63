/* SPDX-License-Identifier: Apache-2.0 */
/* An image codec in plain C: QOI, the Quite OK Image Format (https://qoiformat.org, version 1.0).
 *
 *     cc -O2 -shared -fPIC qoi.c -o libqoi.so
 *         -I"$(python -c 'import headrace; print(headrace.include_dir())')" */
#include <string.h>

#include "headrace/plugin.h"

enum { HEADER_BYTES = 14, END_BYTES = 8 };

typedef struct {
  uint8_t r, g, b, a;
} pixel;

static uint32_t big_endian(const uint8_t* at) {
  return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static int32_t read_header(void* self, const headrace_bytes* file, headrace_image_header* header,
                           headrace_error* error) {
  (void)self;
  if (file->size < HEADER_BYTES)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "its header ends after %d of 14 bytes",
                         (int)file->size);
  const uint32_t width = big_endian(file->data + 4), height = big_endian(file->data + 8);
  const uint8_t channels = file->data[12];
  if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "a size of %u x %u pixels", width, height);
  if (channels != 3 && channels != 4)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "%d channels, not 3 or 4", channels);
  header->width = (int32_t)width;
  header->height = (int32_t)height;
  header->channels = channels;
  header->dtype.code = HEADRACE_UINT;
  header->dtype.bits = 8;
  header->dtype.lanes = 1;
  return HEADRACE_OK;
}

/* Bytes of the chunk that begins with this one. */
static int chunk_bytes(uint8_t first) {
  if (first == 0xFF) return 5;
  if (first == 0xFE) return 4;
  return first >> 6 == 2 ? 2 : 1;
}

/* The next pixel, and in *run how often it is repeated. */
static pixel next_pixel(const uint8_t* at, pixel last, const pixel* seen, int* run) {
  const uint8_t first = at[0], low = first & 0x3F;
  if (first >= 0xFE) { /* QOI_OP_RGB, QOI_OP_RGBA */
    last.r = at[1], last.g = at[2], last.b = at[3];
    if (first == 0xFF) last.a = at[4];
    return last;
  }
  switch (first >> 6) {
    case 0: /* QOI_OP_INDEX */
      return seen[low];
    case 1: /* QOI_OP_DIFF */
      last.r = (uint8_t)(last.r + (low >> 4) - 2);
      last.g = (uint8_t)(last.g + (low >> 2 & 3) - 2);
      last.b = (uint8_t)(last.b + (low & 3) - 2);
      return last;
    case 2: { /* QOI_OP_LUMA */
      const int green = low - 32;
      last.r = (uint8_t)(last.r + green - 8 + (at[1] >> 4));
      last.g = (uint8_t)(last.g + green);
      last.b = (uint8_t)(last.b + green - 8 + (at[1] & 15));
      return last;
    }
    default: /* QOI_OP_RUN */
      *run = low;
      return last;
  }
}

static int32_t decode(void* self, const headrace_decode* work, headrace_error* error) {
  const headrace_view* const out = &work->output;
  const uint64_t end = work->file.size;
  uint64_t at = HEADER_BYTES;
  pixel seen[64], last = {0, 0, 0, 255};
  int run = 0;
  (void)self;
  memset(seen, 0, sizeof seen);
  for (int64_t y = 0; y < out->shape[0]; ++y) {
    uint8_t* to = (uint8_t*)out->data + y * out->strides[0];
    for (int64_t x = 0; x < out->shape[1]; ++x, to += out->strides[1]) {
      if (run > 0) {
        --run;
      } else {
        if (at >= end || end - at < (uint64_t)chunk_bytes(work->file.data[at]))
          return headrace_fail(error, HEADRACE_BAD_RECORD, "it ends in row %d of %d", (int)y,
                               (int)out->shape[0]);
        last = next_pixel(work->file.data + at, last, seen, &run);
        at += (uint64_t)chunk_bytes(work->file.data[at]);
        seen[(last.r * 3 + last.g * 5 + last.b * 7 + last.a * 11) % 64] = last;
      }
      to[0] = last.r, to[1] = last.g, to[2] = last.b;
      if (out->shape[2] == 4) to[3] = last.a;
    }
  }
  if (end - at < END_BYTES) return headrace_fail(error, HEADRACE_BAD_RECORD, "its end is missing");
  return HEADRACE_OK;
}

static const char* const kSuffixes[] = {".qoi"};
static const headrace_signature kSignatures[] = {{.bytes = (const uint8_t*)"qoif", .length = 4}};

static const headrace_codec kCodecs[] = {
    {.name = "qoi",
     .help = "QOI images: RGB and RGBA of 8 bits, lossless.",
     .suffixes = kSuffixes,
     .suffix_count = 1,
     .signatures = HEADRACE_LIST(kSignatures),
     .read_header = read_header,
     .decode = decode},
};

static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = "qoi",
                                        .version = "1.0",
                                        .help = "An example of an image codec.",
                                        .codecs = HEADRACE_LIST(kCodecs)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
