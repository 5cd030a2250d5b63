/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins with a format, for tests/test_plugin_formats.py: files that begin with MAGIC hold
 * records of 8 bytes: the first is how many of the others are text, the rest of them numbers. With
 * -DPARSE=... and the like, one that breaks a rule. */
#include <stdlib.h>
#include <string.h>

#include "headrace/plugin.h"

#ifndef MAGIC
#define MAGIC PLUGIN
#endif
#ifndef FORMAT
#define FORMAT PLUGIN
#endif
#ifndef OPEN
#define OPEN open_file
#endif
#ifndef PARSE
#define PARSE parse
#endif
#ifndef RECOGNIZES
#define RECOGNIZES recognizes
#endif
#ifndef PARAM
#define PARAM "skip"
#endif

#define UNUSED __attribute__((unused)) static

UNUSED int32_t recognizes(const char* path, const headrace_bytes* first) {
  const size_t length = strlen(MAGIC);
  if (!first->data) return strstr(path, "folder-of-" MAGIC) != NULL;
  return first->size >= length && memcmp(first->data, MAGIC, length) == 0;
}
UNUSED int32_t everything(const char* path, const headrace_bytes* first) {
  (void)path, (void)first;
  return 1;
}
UNUSED int32_t crashes(const char* path, const headrace_bytes* first) {
  (void)path, (void)first;
  abort();
}

#define OPEN_ARGUMENTS                                                                             \
  const headrace_value *values, uint32_t count, const char *path, const headrace_opening *opening, \
      void **self, headrace_error *error

typedef struct {
  const headrace_opening* opening;
  const char* folder;
  headrace_error* error;
  int64_t skip;
  int32_t code;
} walk;

static int32_t add_one(walk* w, const char* path) {
  headrace_path_status status = {sizeof status, 0, 0, 0, 0};
  headrace_opened* const opened = w->opening->opened;
  int32_t code = w->opening->get_status(opened, path, &status, w->error);
  if (code == HEADRACE_OK) code = w->opening->add_file(opened, path, w->error);
  for (uint64_t at = strlen(MAGIC) + 8 * (uint64_t)w->skip; code == HEADRACE_OK && at < status.size;
       at += 8) {
    code =
        w->opening->add_record(opened, at, status.size - at < 8 ? status.size - at : 8, w->error);
  }
  return code;
}
static int32_t each(void* context, const char* name, int32_t kind) {
  walk* const w = context;
  char path[4096];
  if (kind != HEADRACE_FILE) return 1;
  snprintf(path, sizeof path, "%s/%s", w->folder, name);
  w->code = add_one(w, path);
  return w->code == HEADRACE_OK;
}

UNUSED int32_t open_file(OPEN_ARGUMENTS) {
  static const headrace_column columns[] = {
      {sizeof(headrace_column), HEADRACE_TEXT, "word", {0, 0, 0}, 0, {0}},
      {sizeof(headrace_column), HEADRACE_TENSOR, "rest", {HEADRACE_UINT, 8, 1}, 1, {-1}},
      {sizeof(headrace_column), HEADRACE_TENSOR, "twice", {HEADRACE_INT, 32, 1}, 1, {2}},
      {sizeof(headrace_column), HEADRACE_LABEL, "length", {0, 0, 0}, 0, {0}}};
  walk w = {opening, path, error, values[0].integer, HEADRACE_OK};
  headrace_path_status status = {sizeof status, 0, 0, 0, 0};
  (void)count;
  *self = malloc(1);
  for (int i = 0; i < 4; ++i) {
    const int32_t code = opening->add_column(opening->opened, &columns[i], error);
    if (code != HEADRACE_OK) return code;
  }
  const int32_t code = opening->get_status(opening->opened, path, &status, error);
  if (code != HEADRACE_OK) return code;
  if (status.kind == HEADRACE_FILE) return add_one(&w, path);
  const int32_t listed = opening->list(opening->opened, path, each, &w, error);
  return listed != HEADRACE_OK ? listed : w.code;
}
static uint8_t some_byte[1] __attribute__((unused));
static headrace_path_status ignored_status __attribute__((unused));
#define OPEN_LIE(name, change)                                                 \
  UNUSED int32_t name(OPEN_ARGUMENTS) {                                        \
    const int32_t code = open_file(values, count, path, opening, self, error); \
    headrace_opened* const opened = opening->opened;                           \
    (void)opened;                                                              \
    if (code == HEADRACE_OK) change;                                           \
    return code;                                                               \
  }
static const headrace_column kAgain = {sizeof kAgain, HEADRACE_TEXT, "word", {0, 0, 0}, 0, {0}};
static const headrace_column kUnnamed = {sizeof kUnnamed, HEADRACE_TEXT, "a b", {0, 0, 0}, 0, {0}};
static const headrace_column kKind = {sizeof kKind, 3, "kind", {0, 0, 0}, 0, {0}};
static const headrace_column kShape = {
    sizeof kShape, HEADRACE_TENSOR, "shape", {HEADRACE_INT, 32, 1}, 9, {0}};
OPEN_LIE(far_record, opening->add_record(opened, 1000, 8, error))
OPEN_LIE(huge_record, opening->add_record(opened, UINT64_MAX, 8, error))
OPEN_LIE(same_column, opening->add_column(opened, &kAgain, error))
OPEN_LIE(unnamed, opening->add_column(opened, &kUnnamed, error))
OPEN_LIE(other_kind, opening->add_column(opened, &kKind, error))
OPEN_LIE(many_axes, opening->add_column(opened, &kShape, error))
OPEN_LIE(missing_file, opening->add_file(opened, "/nothing/there", error))
OPEN_LIE(reads_far, return opening->read(opened, path, 100000, some_byte, 1, error))
OPEN_LIE(gets_no_status, opening->get_status(opened, NULL, &ignored_status, error))
OPEN_LIE(lists_nothing, opening->list(opened, NULL, NULL, NULL, error))
OPEN_LIE(reads_nothing, opening->read(opened, NULL, 0, some_byte, 1, error))
#define MORE(call)                                   \
  {                                                  \
    char more[4096];                                 \
    snprintf(more, sizeof more, "%s.more", path);    \
    call; /* and goes on as if nothing had failed */ \
  }
OPEN_LIE(gets_status_more, MORE(opening->get_status(opened, more, &ignored_status, error)))
OPEN_LIE(lists_more, MORE(opening->list(opened, more, NULL, NULL, error)))
OPEN_LIE(reads_more, MORE(opening->read(opened, more, 0, some_byte, 1, error)))
OPEN_LIE(fails, return headrace_fail(error, HEADRACE_FAILED, "no license"))
OPEN_LIE(damaged, return headrace_fail(error, HEADRACE_BAD_RECORD, "its table is damaged"))
OPEN_LIE(rejects, return headrace_fail(error, HEADRACE_BAD_ARGUMENTS, "skip is too large"))
UNUSED int32_t nothing(OPEN_ARGUMENTS) {
  (void)values, (void)count, (void)path, (void)opening, (void)self, (void)error;
  return HEADRACE_OK;
}

#define PARSE_ARGUMENTS const void *self, const headrace_parse *record, headrace_error *error

UNUSED int32_t parse(PARSE_ARGUMENTS) {
  headrace_cell* const cells = record->cells;
  const headrace_bytes bytes = record->bytes;
  (void)self;
  if (bytes.size < 8 || bytes.data[0] > 7)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "a word of %d", (int)bytes.data[0]);
  const uint8_t length = bytes.data[0];
  cells[0].data = bytes.data + 1;
  cells[0].bytes = length;
  cells[1].data = bytes.data + 1 + length;
  cells[1].bytes = 7u - length;
  cells[1].shape[0] = 7 - length;
  if (cells[2].wanted) {
    const int32_t twice[] = {2 * length, (int32_t)record->record};
    uint8_t* const memory = record->allocate(record->opened, 2, sizeof twice);
    if (!memory) return headrace_fail(error, HEADRACE_FAILED, "out of memory");
    memcpy(memory, twice, sizeof twice);
    cells[2].data = memory;
    cells[2].bytes = sizeof twice;
  }
  cells[3].integer = length;
  return HEADRACE_OK;
}
#define PARSE_LIE(name, change)                      \
  UNUSED int32_t name(PARSE_ARGUMENTS) {             \
    const int32_t code = parse(self, record, error); \
    headrace_cell* const cells = record->cells;      \
    (void)cells;                                     \
    if (code == HEADRACE_OK) change;                 \
    return code;                                     \
  }
PARSE_LIE(beyond, cells[0].bytes = 100)
PARSE_LIE(before, cells[0].data -= 2)
PARSE_LIE(elsewhere, cells[0].data = (const uint8_t*)MAGIC)
PARSE_LIE(null_data, (cells[0].data = NULL, cells[0].bytes = 1))
PARSE_LIE(endless, cells[0].bytes = UINT64_MAX)
PARSE_LIE(other_shape, cells[2].shape[0] = 3)
PARSE_LIE(more_than_shape, ++cells[1].shape[0])
PARSE_LIE(negative_shape, cells[1].shape[0] = -1)
PARSE_LIE(no_utf8, ((uint8_t*)cells[0].data)[0] = 0xFF)
PARSE_LIE(writes_past, ((uint8_t*)cells[2].data)[8] = 1)
#ifndef BYTES
#define BYTES 8
#endif
PARSE_LIE(allocates, if (!record->allocate(record->opened, 2, BYTES)) return HEADRACE_FAILED)
PARSE_LIE(other_cell, record->allocate(record->opened, 9, 8))
PARSE_LIE(stops, return headrace_fail(error, HEADRACE_FAILED, "the key has expired"))
PARSE_LIE(parse_crashes, (abort(), cells[0].bytes = 0))

static const headrace_param kParams[] = {{.name = PARAM,
                                          .help = "Records to leave out.",
                                          .type = HEADRACE_PARAM_INT,
                                          .minimum = 0,
                                          .maximum = 9}};
static const headrace_format kFormats[] = {{.name = FORMAT,
                                            .help = "Words.",
                                            .example = "hr.open(\"words\")",
                                            .params = HEADRACE_LIST(kParams),
                                            .recognizes = RECOGNIZES,
                                            .open = OPEN,
                                            .close = free,
                                            .parse = PARSE}};
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = PLUGIN,
                                        .version = "1.0",
                                        .formats = HEADRACE_LIST(kFormats)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
