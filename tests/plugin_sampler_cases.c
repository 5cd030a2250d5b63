/* SPDX-License-Identifier: Apache-2.0 */
/* Plug-ins with a sampler, for tests/test_plugin_samplers.py: record (first + position) % count,
 * where `first` depends on seed and epoch. With -DORDER=... and the like, one that breaks a rule.
 */
#include <stdlib.h>

#include "headrace/plugin.h"

#ifndef ORDER
#define ORDER rotated
#endif
#ifndef CREATE
#define CREATE create
#endif
#ifndef SIZE
#define SIZE NULL
#endif
#ifndef BATCHES
#define BATCHES NULL
#endif
#ifndef FLAGS
#define FLAGS 0
#endif
#ifndef PER_RECORD
#define PER_RECORD HEADRACE_NOTHING
#endif
#ifndef PARAM
#define PARAM "step"
#endif

#define UNUSED __attribute__((unused)) static

typedef struct {
  headrace_records records;
  int64_t step;
} object;

UNUSED int32_t create(const headrace_value* values, uint32_t count, const headrace_records* records,
                      void** self, headrace_error* error) {
  object* made = malloc(sizeof *made);
  (void)count;
  if (!made) return headrace_fail(error, HEADRACE_FAILED, "out of memory");
  made->records = *records;
  made->step = values[0].integer;
  *self = made;
  return HEADRACE_OK;
}
UNUSED int32_t refuses(const headrace_value* values, uint32_t count,
                       const headrace_records* records, void** self, headrace_error* error) {
  (void)values, (void)count, (void)self;
  return headrace_fail(error, HEADRACE_BAD_ARGUMENTS, "%d records are too few",
                       (int)records->count);
}

UNUSED int64_t minus_one(const void* self) { return self ? -1 : 0; }
UNUSED int64_t half(const void* self) { return ((const object*)self)->records.count / 2; }
UNUSED int64_t twice(const void* self) { return ((const object*)self)->records.count * 2; }

#define ARGUMENTS                                                                              \
  const void *self, uint64_t seed, uint64_t epoch, int64_t begin, int64_t count, int64_t *out, \
      headrace_error *error

UNUSED int32_t rotated(ARGUMENTS) {
  const object* const own = self;
  (void)error;
  for (int64_t i = 0; i < count; ++i)
    out[i] = (int64_t)((seed + epoch * 3 + (uint64_t)(begin + i)) % (uint64_t)own->records.count);
  return HEADRACE_OK;
}
/* Records by their label, length or weight, the smallest first. */
UNUSED int32_t sorted(ARGUMENTS) {
  const headrace_records* const all = &((const object*)self)->records;
  (void)seed, (void)epoch, (void)begin, (void)error;
  for (int64_t i = 0; i < count; ++i) {
    const double own = all->weights ? all->weights[i] : (double)all->integers[i];
    int64_t before = 0;
    for (int64_t k = 0; k < all->count; ++k) {
      const double other = all->weights ? all->weights[k] : (double)all->integers[k];
      before += other < own || (other == own && k < i);
    }
    out[before] = i;
  }
  return HEADRACE_OK;
}
#define LIE(name, change)                                                      \
  UNUSED int32_t name(ARGUMENTS) {                                             \
    const int32_t code = rotated(self, seed, epoch, begin, count, out, error); \
    change;                                                                    \
    return code;                                                               \
  }
LIE(outside, out[count - 1] = ((const object*)self)->records.count)
LIE(negative, out[0] = -7)
LIE(repeated, out[count - 1] = out[0])
UNUSED int32_t leaves_one(ARGUMENTS) {
  return rotated(self, seed, epoch, begin, count - 1, out, error);
}
static uint64_t calls;
UNUSED int32_t differs(ARGUMENTS) {
  return rotated(self, seed + __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED), epoch, begin, count,
                 out, error);
}
UNUSED int32_t fails(ARGUMENTS) {
  (void)self, (void)seed, (void)epoch, (void)begin, (void)count, (void)out;
  return headrace_fail(error, HEADRACE_FAILED, "no order today");
}
UNUSED int32_t crashes(ARGUMENTS) {
  (void)self, (void)seed, (void)epoch, (void)begin, (void)count, (void)out, (void)error;
  abort();
}

static const int64_t kSizes[] = {3, 1, 4, 2}, kTooMany[] = {3, 1, 4, 3}, kEmpty[] = {10, 0};
#define BATCH_SIZES(name, list, length)                                        \
  UNUSED int32_t name(const void* self, const int64_t** sizes, int64_t* count, \
                      headrace_error* error) {                                 \
    (void)self, (void)error;                                                   \
    *sizes = list;                                                             \
    *count = length;                                                           \
    return HEADRACE_OK;                                                        \
  }
BATCH_SIZES(four, kSizes, 4)
BATCH_SIZES(too_many, kTooMany, 4)
BATCH_SIZES(too_few, kSizes, 3)
BATCH_SIZES(empty, kEmpty, 2)
BATCH_SIZES(none, NULL, 4)

static const headrace_param kParams[] = {{.name = PARAM,
                                          .help = "A number.",
                                          .type = HEADRACE_PARAM_INT,
                                          .fallback = {.integer = 1},
                                          .minimum = 1,
                                          .maximum = 9}};
static const headrace_sampler kSamplers[] = {{.name = SAMPLER,
                                              .help = "Rotated.",
                                              .flags = FLAGS,
                                              .per_record = PER_RECORD,
                                              .params = HEADRACE_LIST(kParams),
                                              .create = CREATE,
                                              .destroy = free,
                                              .size = SIZE,
                                              .order = ORDER,
                                              .batches = BATCHES}};
static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = "orders",
                                        .version = "1.0",
                                        .samplers = HEADRACE_LIST(kSamplers)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi;
  return &kPlugin;
}
