/* SPDX-License-Identifier: Apache-2.0 */
/* A plug-in in plain C: Vignette darkens images toward their corners.
 *
 *     cc -O2 -shared -fPIC vignette.c -o libvignette.so
 *         -I"$(python -c 'import headrace; print(headrace.include_dir())')" */
#include <stdlib.h>

#include "headrace/plugin.h"

typedef struct {
  double strength, p;
} vignette;

static int32_t create(const headrace_value* values, uint32_t count, void** self,
                      headrace_error* error) {
  vignette* made = malloc(sizeof *made);
  (void)count; /* as many as are declared below */
  if (!made) return headrace_fail(error, HEADRACE_FAILED, "out of memory");
  made->strength = values[0].number;
  made->p = values[1].number;
  *self = made;
  return HEADRACE_OK;
}

/* The share of the light that is left at a pixel, in float32: all of it in the middle. */
static float light(double strength, int64_t y, int64_t x, int64_t height, int64_t width) {
  const float dy = (float)(2 * y + 1 - height) / (float)height;
  const float dx = (float)(2 * x + 1 - width) / (float)width;
  return 1.0f - (float)strength * 0.5f * (dy * dy + dx * dx);
}

static int32_t run(const void* self, const headrace_record* record, const headrace_field* input,
                   headrace_field* output, headrace_error* error) {
  const vignette* const v = self;
  const headrace_view *const in = &input->view, *const out = &output->view;
  const int64_t height = in->shape[0], width = in->shape[1], channels = in->shape[2];
  const double strength = headrace_coin(record, v->p) ? v->strength : 0;
  const int bytes = headrace_is(in->dtype, HEADRACE_UINT, 8);
  (void)error;
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t y = 0; y < height; ++y) {
      const int64_t from = y * in->strides[0] + c * in->strides[2];
      const int64_t to = y * out->strides[0] + c * out->strides[2];
      for (int64_t x = 0; x < width; ++x) {
        const int64_t at = from + x * in->strides[1], there = to + x * out->strides[1];
        const float left = light(strength, y, x, height, width);
        if (bytes) {
          const float value = (float)((const uint8_t*)in->data)[at] * left;
          ((uint8_t*)out->data)[there] = (uint8_t)(value + 0.5f);
        } else {
          ((float*)out->data)[there] = ((const float*)in->data)[at] * left;
        }
      }
    }
  }
  return HEADRACE_OK;
}

static const headrace_param kParams[] = {
    {.name = "strength",
     .help = "The share of the light that corners lose.",
     .type = HEADRACE_PARAM_FLOAT,
     .fallback = {.number = 0.5},
     .minimum = 0,
     .maximum = 1},
    {.name = "p",
     .help = "Probability of darkening a record.",
     .type = HEADRACE_PARAM_FLOAT,
     .fallback = {.number = 1},
     .minimum = 0,
     .maximum = 1},
};

static const headrace_transform kTransforms[] = {
    {.name = "Vignette",
     .help = "Darkens images toward their corners.\n\n"
             "Images, uint8 or float32; shape and dtype stay. Masks are left as they are.",
     .flags = HEADRACE_VALUES | HEADRACE_RANDOM,
     .kinds = HEADRACE_IMAGE,
     .image_dtypes = HEADRACE_U8 | HEADRACE_F32,
     .params = HEADRACE_LIST(kParams),
     .create = create,
     .destroy = free,
     .run = run},
};

static const headrace_plugin kPlugin = {.abi = HEADRACE_PLUGIN_ABI,
                                        .struct_size = sizeof kPlugin,
                                        .name = "vignette",
                                        .version = "1.0",
                                        .help = "An example of a plug-in in plain C.",
                                        .transforms = HEADRACE_LIST(kTransforms)};

HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t abi) {
  (void)abi; /* this one fits one version only, which the engine sees in the table */
  return &kPlugin;
}
