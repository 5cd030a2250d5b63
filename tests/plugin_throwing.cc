// SPDX-License-Identifier: Apache-2.0
// For tests/test_plugins_refused.py: an exception that nobody catches before it leaves the library.
#include <headrace/plugin.h>

#include <stdexcept>

namespace {

int32_t run(const void*, const headrace_record*, const headrace_field*, headrace_field*,
            headrace_error*) {
  throw std::runtime_error("out");
}

void destroy(void*) { throw std::runtime_error("out of destroy"); }

int64_t size(const void*) { throw std::runtime_error("out of size"); }

int32_t order(const void*, uint64_t, uint64_t, int64_t, int64_t, int64_t*, headrace_error*) {
  return HEADRACE_OK;
}

}  // namespace

extern "C" HEADRACE_EXPORT const headrace_plugin* headrace_plugin_table(uint32_t) {
  static headrace_transform transform{};
  transform.name = "Throwing";
  transform.help = "Throws.";
  transform.run = run;
  transform.destroy = destroy;
  transform.flags = HEADRACE_VALUES;
  transform.kinds = HEADRACE_IMAGE;
  static headrace_sampler sampler{};
  sampler.name = "throwing";
  sampler.help = "Throws.";
  sampler.size = size;
  sampler.order = order;
  static headrace_plugin plugin{};
  plugin.abi = HEADRACE_PLUGIN_ABI;
  plugin.struct_size = sizeof plugin;
  plugin.name = "throwing";
  plugin.version = "1";
  plugin.transforms = {&transform, 1, sizeof transform};
  plugin.samplers = {&sampler, 1, sizeof sampler};
  return &plugin;
}
