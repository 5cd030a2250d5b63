/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins with a codec, for tests/test_plugin_codecs.py: "raw" images, which are a MAGIC of four
 * bytes, width, height, channels, bits and flags (a byte each), three of zeros, then the samples.
 * With -DDECODE=... and the like, one that breaks a rule. */
#include <stdlib.h>
#include <string.h>

#include "headrace/plugin.h"

#ifndef MAGIC
#define MAGIC PLUGIN
#endif
#ifndef SUFFIX
#define SUFFIX ".raw"
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef HEADER
#define HEADER read_header
#endif
#ifndef DECODE
#define DECODE decode
#endif
#ifndef CREATE
#define CREATE create
#endif
#ifndef SIGNATURE
#define SIGNATURE {.bytes = (const uint8_t*)MAGIC, .length = 4}
#endif

enum { BEGIN = 12 };
#define UNUSED __attribute__((unused)) static

UNUSED int32_t create(void** self, headrace_error* error) {
  *self = malloc(1);
  return *self ? HEADRACE_OK : headrace_fail(error, HEADRACE_FAILED, "out of memory");
}
UNUSED int32_t no_create(void** self, headrace_error* error) {
  (void)self;
  return headrace_fail(error, HEADRACE_FAILED, "no license");
}
UNUSED int32_t crash_create(void** self, headrace_error* error) {
  (void)error, (void)self;
  abort();
}

#define HEADER_ARGUMENTS \
  void *self, const headrace_bytes *file, headrace_image_header *header, headrace_error *error

UNUSED int32_t read_header(HEADER_ARGUMENTS) {
  const uint8_t* const at = file->data;
  (void)self;
  if (file->size < BEGIN) return headrace_fail(error, HEADRACE_BAD_RECORD, "no header");
  header->width = at[4];
  header->height = at[5];
  header->channels = at[6];
  header->dtype.code = at[7] == 32 ? HEADRACE_FLOAT : HEADRACE_UINT;
  header->dtype.bits = at[7];
  header->dtype.lanes = 1;
  header->flags = at[8];
  return HEADRACE_OK;
}
#define LYING(name, change)                 \
  UNUSED int32_t name(HEADER_ARGUMENTS) {   \
    read_header(self, file, header, error); \
    change;                                 \
    return HEADRACE_OK;                     \
  }
LYING(no_width, header->width = 0)
LYING(minus_height, header->height = -5)
LYING(huge, header->width = header->height = INT32_MAX)
LYING(many_channels, header->channels = 17)
LYING(other_dtype, header->dtype.code = HEADRACE_INT)
LYING(many_bits, header->bits = 9)
LYING(upside_down, header->orientation = 9)
LYING(new_flags, header->flags = 64)
LYING(cmyk_of_three, header->flags = HEADRACE_CMYK)
LYING(hungry, header->working_bytes = UINT64_MAX)
static int calls;
LYING(growing, header->height += calls++ % 2)
UNUSED int32_t header_status(HEADER_ARGUMENTS) {
  (void)self, (void)file, (void)header, (void)error;
  return 77;
}

#define DECODE_ARGUMENTS void *self, const headrace_decode *work, headrace_error *error

UNUSED int32_t decode(DECODE_ARGUMENTS) {
  const headrace_view* const out = &work->output;
  const headrace_image_header* const header = work->header;
  const size_t pixel = (size_t)header->channels * (header->dtype.bits / 8);
  (void)self;
  if (work->file.size < BEGIN + pixel * (size_t)header->width * (size_t)header->height)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "samples are missing");
  for (int64_t y = 0; y < out->shape[0]; ++y) {
    const size_t first = (size_t)((work->y + y) * header->width + work->x) * pixel;
    memcpy((char*)out->data + (size_t)(y * out->strides[0]) * (header->dtype.bits / 8),
           work->file.data + BEGIN + first, pixel * (size_t)out->shape[1]);
  }
  return HEADRACE_OK;
}
UNUSED int32_t ends_the_run(DECODE_ARGUMENTS) {
  (void)self, (void)work;
  return headrace_fail(error, HEADRACE_FAILED, "the dongle was removed");
}
UNUSED int32_t writes_past(DECODE_ARGUMENTS) {
  const headrace_view* const out = &work->output;
  decode(self, work, error);
  ((uint8_t*)out->data)[out->shape[0] * out->strides[0] * (out->dtype.bits / 8)] = 1;
  return HEADRACE_OK;
}
UNUSED int32_t leaves_a_row(DECODE_ARGUMENTS) {
  headrace_view* const out = (headrace_view*)&work->output;
  --out->shape[0];
  return decode(self, work, error);
}
UNUSED int32_t crashes(DECODE_ARGUMENTS) {
  (void)self, (void)work, (void)error;
  abort();
}

static const char* const kSuffixes[] = {SUFFIX};
static const headrace_signature kSignatures[] = {SIGNATURE};
static const headrace_codec kCodecs[] = {
    {.name = PLUGIN,
     .help = "Raw images.",
     .suffixes = kSuffixes,
     .suffix_count = 1,
     .flags = FLAGS,
     .signatures = HEADRACE_LIST(kSignatures),
     .create = CREATE,
     .destroy = free,
     .read_header = HEADER,
     .decode = DECODE},
};
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = PLUGIN,
                                        .version = "1.0",
                                        .codecs = HEADRACE_LIST(kCodecs)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
