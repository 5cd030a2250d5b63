/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins for tests/test_plugins.py: one that keeps the rules, and with -DNAME=... one that breaks
 * a rule. Compiled with -DPLUGIN="name" and -DTRANSFORM="Name", which differ from test to test. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "headrace/plugin.h"

#ifndef FLAGS
#define FLAGS HEADRACE_VALUES
#endif
#ifndef KINDS
#define KINDS HEADRACE_IMAGE
#endif
#ifndef DTYPES
#define DTYPES HEADRACE_U8
#endif
#ifndef RUN
#define RUN run
#endif
#ifndef SHAPE
#define SHAPE NULL
#endif
#ifndef CREATE
#define CREATE NULL
#endif
#ifndef ABI
#define ABI HEADRACE_PLUGIN_ABI
#endif
#ifndef SIZE
#define SIZE sizeof(headrace_plugin)
#endif
#ifndef HELP
#define HELP "Does what its name says."
#endif

#define ARGUMENTS                                                                                 \
  const void *self, const headrace_record *record, const headrace_field *in, headrace_field *out, \
      headrace_error *error
#define UNUSED (void)self, (void)record, (void)in, (void)out, (void)error

static size_t bytes_of(const headrace_view* view) {
  size_t count = view->dtype.bits / 8;
  for (int i = 0; i < view->ndim; ++i) count *= (size_t)view->shape[i];
  return count;
}

/* 255 minus each byte. */
__attribute__((unused)) static int32_t run(ARGUMENTS) {
  UNUSED;
  const uint8_t* from = in->view.data;
  uint8_t* to = out->view.data;
  for (size_t i = 0; i < bytes_of(&in->view); ++i) to[i] = (uint8_t)(255 - from[i]);
  return HEADRACE_OK;
}

/* Of int64, or of float32. */
__attribute__((unused)) static int32_t add_one(ARGUMENTS) {
  UNUSED;
  const int wide = headrace_is(in->view.dtype, HEADRACE_INT, 64);
  for (size_t i = 0; i < bytes_of(&in->view) / (wide ? 8 : 4); ++i) {
    if (wide) ((int64_t*)out->view.data)[i] = ((const int64_t*)in->view.data)[i] + 1;
    if (!wide) ((float*)out->view.data)[i] = ((const float*)in->view.data)[i] + 1;
  }
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t refuse_odd(ARGUMENTS) {
  if (record->index % 2 == 1)
    return headrace_fail(error, HEADRACE_BAD_RECORD, "record %d is odd", (int)record->index);
  return run(self, record, in, out, error);
}

__attribute__((unused)) static int32_t fail(ARGUMENTS) {
  UNUSED;
  return headrace_fail(error, HEADRACE_FAILED, "no license for this machine");
}

__attribute__((unused)) static int32_t unknown_status(ARGUMENTS) {
  UNUSED;
  return 77;
}

__attribute__((unused)) static int32_t minus_one(ARGUMENTS) {
  UNUSED;
  return -1;
}

__attribute__((unused)) static int32_t long_text(ARGUMENTS) {
  UNUSED;
  memset(error->text, 0xFF, error->capacity); /* no end, and no UTF-8 */
  return HEADRACE_BAD_RECORD;
}

__attribute__((unused)) static int32_t draw(ARGUMENTS) {
  run(self, record, in, out, error);
  ((uint8_t*)out->view.data)[0] = (uint8_t)record->bits(record->draws);
  return HEADRACE_OK;
}

/* Fills the output with its own numbers: the seed, draws of each kind, index and position. */
__attribute__((unused)) static int32_t numbers(ARGUMENTS) {
  int64_t* to = out->view.data;
  UNUSED;
  to[0] = (int64_t)(record->seed >> 1);
  to[1] = record->bits(record->draws);
  to[2] = headrace_below(record, 1000);
  to[3] = (int64_t)(headrace_uniform(record, 0, 1000));
  to[4] = record->index;
  to[5] = record->position;
  to[6] = headrace_below(record, 0) + headrace_below(record, -5);
  return HEADRACE_OK;
}

/* Images from right to left; a label is 0 for "left" and 1 for "right". */
__attribute__((unused)) static int32_t mirror(ARGUMENTS) {
  UNUSED;
  const headrace_view *from = &in->view, *to = &out->view;
  if (in->kind == HEADRACE_LABEL) {
    *(int64_t*)to->data = 1 - *(const int64_t*)from->data;
    return HEADRACE_OK;
  }
  for (int64_t c = 0; c < to->shape[2]; ++c)
    for (int64_t y = 0; y < to->shape[0]; ++y)
      for (int64_t x = 0; x < to->shape[1]; ++x)
        ((uint8_t*)to->data)[c * to->strides[2] + y * to->strides[0] + x] =
            ((const uint8_t*)
                 from->data)[c * from->strides[2] + y * from->strides[0] + (to->shape[1] - 1 - x)];
  return HEADRACE_OK;
}

/* In place of each box, the canvas before and after. */
__attribute__((unused)) static int32_t say_canvas(ARGUMENTS) {
  if (in->kind != HEADRACE_BOXES) return run(self, record, in, out, error);
  float* to = out->view.data;
  for (int64_t row = 0; row < out->view.shape[0]; ++row, to += 4) {
    to[0] = (float)in->canvas_height, to[1] = (float)in->canvas_width;
    to[2] = (float)out->canvas_height, to[3] = (float)out->canvas_width;
  }
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t past_the_end(ARGUMENTS) {
  run(self, record, in, out, error);
  ((uint8_t*)out->view.data)[bytes_of(&out->view) + 20] = 1;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t before_the_begin(ARGUMENTS) {
  run(self, record, in, out, error);
  ((uint8_t*)out->view.data)[-3] = 1;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t half(ARGUMENTS) {
  UNUSED;
  memcpy(out->view.data, in->view.data, bytes_of(&in->view) / 2);
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t change_input(ARGUMENTS) {
  run(self, record, in, out, error);
  ((uint8_t*)in->view.data)[5] ^= 1;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t no_function_of_its_input(ARGUMENTS) {
  static int calls = 0;
  run(self, record, in, out, error);
  ((uint8_t*)out->view.data)[7] = (uint8_t)++calls;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t crash(ARGUMENTS) {
  UNUSED;
  static volatile int* volatile nowhere = NULL;
  if (record->index == 2) *nowhere = 1;
  return run(self, record, in, out, error);
}

__attribute__((unused)) static int32_t read_beyond(ARGUMENTS) {
  UNUSED;
  ((uint8_t*)out->view.data)[0] = ((const uint8_t*)in->view.data)[bytes_of(&in->view)];
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t give_up(ARGUMENTS) {
  UNUSED;
  abort();
}

/* ---- Shapes ---- */

__attribute__((unused)) static int32_t other_size(ARGUMENTS) {
  UNUSED;
  out->view.shape[0] = 5;
  return HEADRACE_OK;
}

/* Plans 5 rows, and makes 6 of a record. */
__attribute__((unused)) static int32_t lie(ARGUMENTS) {
  UNUSED;
  out->view.shape[0] = record ? 6 : 5;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t open_shape(ARGUMENTS) {
  UNUSED;
  out->view.shape[0] = -1;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t nonsense(ARGUMENTS) {
  UNUSED;
  out->view.ndim = 99;
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t huge(ARGUMENTS) {
  UNUSED;
  out->view.shape[0] = out->view.shape[1] = 1 << 20;
  return HEADRACE_OK;
}

/* Of which 4 x 2^62 is 0 in 64 bits. */
__attribute__((unused)) static int32_t beyond(ARGUMENTS) {
  UNUSED;
  out->view.shape[0] = (int64_t)1 << 62;
  out->view.shape[1] = 4;
  if (out->kind == HEADRACE_TENSOR) out->view.ndim = 2;
  return HEADRACE_OK;
}

/* Not before there is a record. */
__attribute__((unused)) static int32_t beyond_late(ARGUMENTS) {
  if (record) return beyond(self, record, in, out, error);
  out->view.shape[0] = out->view.shape[1] = -1;
  if (out->kind == HEADRACE_TENSOR) out->view.ndim = 2;
  return HEADRACE_OK;
}

/* Of a record, one row fewer than planned. */
__attribute__((unused)) static int32_t lose_a_row(ARGUMENTS) {
  UNUSED;
  if (record) --out->view.shape[0];
  return HEADRACE_OK;
}

__attribute__((unused)) static int32_t refuse_shape(ARGUMENTS) {
  UNUSED;
  return headrace_fail(error, HEADRACE_BAD_ARGUMENTS, "gray images only");
}

/* Seven numbers of int64, whatever comes. */
__attribute__((unused)) static int32_t seven(ARGUMENTS) {
  UNUSED;
  out->view.ndim = 1;
  out->view.shape[0] = 7;
  out->view.dtype.code = HEADRACE_INT;
  out->view.dtype.bits = 64;
  return HEADRACE_OK;
}

/* ---- Parameters ---- */

#ifdef PARAMS
static const char* const kWords[] = {"soft", "hard"};
static const int64_t kSizes[] = {3, 5};
static const double kScales[] = {0.5};
static const headrace_param kParams[] = {PARAMS};

/* Refuses what it is told to refuse, and says all that it was given. */
__attribute__((unused)) static int32_t create(const headrace_value* values, uint32_t count,
                                              void** self, headrace_error* error) {
  *self = NULL;
  if (count != 6) return headrace_fail(error, HEADRACE_FAILED, "%u values", count);
  return headrace_fail(error, HEADRACE_BAD_ARGUMENTS, "%d %d %.2f %s %d:%d,%d %d:%.2f",
                       (int)values[0].integer, (int)values[1].integer, values[2].number,
                       values[3].text, (int)values[4].count, (int)values[4].integers[0],
                       (int)values[4].integers[1], (int)values[5].count, values[5].numbers[0]);
}
#endif

__attribute__((unused)) static const headrace_transform kTransforms[] = {
    {.name = TRANSFORM,
     .help = HELP,
     .flags = FLAGS,
     .kinds = KINDS,
     .image_dtypes = DTYPES,
#ifdef PARAMS
     .params = HEADRACE_LIST(kParams),
#endif
     .create = CREATE,
     .shape = SHAPE,
     .run = RUN},
#ifdef SECOND
    {.name = SECOND, .help = HELP, .flags = HEADRACE_VALUES, .kinds = HEADRACE_IMAGE, .run = run}
#endif
};

#ifndef NO_TABLE
static const headrace_plugin kPlugin = {.abi = ABI,
                                        .struct_size = SIZE,
                                        .name = PLUGIN,
                                        .version = "1.0",
                                        .transforms = HEADRACE_LIST(kTransforms)};

#ifdef NEEDS
extern int headrace_test_nowhere(void);
#endif

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
#ifdef NEEDS
  return headrace_test_nowhere() ? NULL : &kPlugin;
#endif
#ifdef TABLE
  TABLE;
#endif
  return abi == HEADRACE_PLUGIN_ABI ? &kPlugin : NULL;
}
#endif
