/* SPDX-License-Identifier: Apache-2.0 */
/* A format in plain C: .frames files hold encoded images with labels.
 *
 *     "FRAMES1\n", the number of records (8 bytes), where each of them ends in the file (8 bytes
 *     each), then the records: a label (4 bytes, signed) and an encoded image. Little-endian.
 *
 *     cc -O2 -shared -fPIC frames.c -o libframes.so
 *         -I"$(python -c 'import headrace; print(headrace.include_dir())')" */
#include <stdlib.h>
#include <string.h>

#include "headrace/plugin.h"

enum { MAGIC = 8, HEAD = 16 };

static uint64_t little_endian(const uint8_t* at, int bytes) {
  uint64_t out = 0;
  for (int i = bytes - 1; i >= 0; --i) out = out << 8 | at[i];
  return out;
}

static int32_t recognizes(const char* path, const headrace_bytes* first) {
  (void)path;
  return first->size >= HEAD && memcmp(first->data, "FRAMES1\n", MAGIC) == 0;
}

static int32_t add_records(const headrace_opening* opening, const uint8_t* ends, uint64_t begin,
                           uint64_t count, uint64_t size, headrace_error* error) {
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t end = little_endian(ends + 8 * i, 8);
    if (end < begin || end > size)
      return headrace_fail(error, HEADRACE_BAD_RECORD, "record %d ends outside of the file",
                           (int)i);
    const int32_t code = opening->add_record(opening->opened, begin, end - begin, error);
    if (code != HEADRACE_OK) return code;
    begin = end;
  }
  return HEADRACE_OK;
}

static int32_t open_file(const headrace_value* values, uint32_t count, const char* path,
                         const headrace_opening* opening, void** self, headrace_error* error) {
  headrace_opened* const opened = opening->opened;
  const headrace_column image = {sizeof image, HEADRACE_IMAGE, "image", {0, 0, 0}, 0, {0}};
  const headrace_column label = {sizeof label, HEADRACE_LABEL, "label", {0, 0, 0}, 0, {0}};
  headrace_path_status status = {sizeof status, 0, 0, 0, 0};
  uint8_t head[HEAD];
  int32_t code;
  (void)values, (void)count, (void)self; /* no arguments, and no object */
  if ((code = opening->get_status(opened, path, &status, error)) != HEADRACE_OK) return code;
  if ((code = opening->read(opened, path, 0, head, HEAD, error)) != HEADRACE_OK) return code;
  const uint64_t records = little_endian(head + MAGIC, 8);
  if (records > (status.size - HEAD) / 8)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "its table has more records than fit");
  uint8_t* const ends = malloc(8 * records + 1);
  if (!ends) return headrace_fail(error, HEADRACE_FAILED, "out of memory");
  code = opening->read(opened, path, HEAD, ends, 8 * records, error);
  if (code == HEADRACE_OK) code = opening->add_column(opened, &image, error);
  if (code == HEADRACE_OK) code = opening->add_column(opened, &label, error);
  if (code == HEADRACE_OK) code = opening->add_file(opened, path, error);
  if (code == HEADRACE_OK)
    code = add_records(opening, ends, HEAD + 8 * records, records, status.size, error);
  free(ends);
  return code;
}

static int32_t parse(const void* self, const headrace_parse* record, headrace_error* error) {
  const headrace_bytes bytes = record->bytes;
  headrace_cell *const image = &record->cells[0], *const label = &record->cells[1];
  (void)self;
  if (bytes.size < 4) return headrace_fail(error, HEADRACE_BAD_RECORD, "it has no label");
  image->data = bytes.data + 4;
  image->bytes = bytes.size - 4;
  label->integer = (int32_t)little_endian(bytes.data, 4);
  return HEADRACE_OK;
}

static const headrace_format kFormats[] = {
    {.name = "frames",
     .help = "Files of encoded images with labels. Fields: image and label.",
     .example = "hr.open(\"train.frames\")",
     .recognizes = recognizes,
     .open = open_file,
     .parse = parse},
};

static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = "frames",
                                        .version = "1.0",
                                        .help = "An example of a format.",
                                        .formats = HEADRACE_LIST(kFormats)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
