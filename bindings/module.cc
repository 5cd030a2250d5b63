// SPDX-License-Identifier: Apache-2.0

#include <nanobind/stl/optional.h>

#include "bindings/bindings.h"
#include "headrace/base/number_text.h"
#include "headrace/kernels/dispatch.h"

namespace headrace::python {
namespace {

std::vector<std::string_view> simd_levels() {
  std::vector<std::string_view> names;
  for (const SimdForm form : available_forms()) names.push_back(name_of(form));
  return names;
}

void set_simd_level_by_name(std::string_view name) {
  for (const SimdForm form : available_forms()) {
    if (name_of(form) == name) return set_simd_form(form);
  }
  throw nb::value_error("this CPU does not support that level; see simd_levels()");
}

}  // namespace

NB_MODULE(_core, module) {
  module.doc() =
      "The engine of Headrace. Use the package headrace instead; names in this module are not "
      "stable.";
  // A class of a script and the source over it refer to each other, through the script's globals
  // and through the engine, where Python's garbage collector cannot see the cycle: they live until
  // exit, which is not a leak.
  nb::set_leak_warnings(false);
  module.attr("__version__") = HEADRACE_VERSION;
  bind_errors(module);
  bind_array(module);
  bind_deferred_picture(module);
  bind_python_files(module);
  bind_python_function(module);
  bind_registry(module);
  bind_plugin(module);
  bind_source(module);
  bind_decode(module);
  bind_video(module);
  bind_columns(module);
  bind_combined(module);
  bind_pack(module);
  bind_row_index(module);
  bind_lent_rows(module);
  bind_python_source(module);
  bind_sampling(module);
  bind_loader(module);
  bind_prefetcher(module);
  bind_stored_batches(module);
  bind_interleaving(module);
  bind_tools(module);
  bind_gil_share(module);
  bind_block_cache(module);
  bind_memory_volume(module);
  bind_remote(module);
  module.def("simd_level", [] { return name_of(simd_form()); }, "The instruction set in use.");
  module.def(
      "simd_reason",
      [] {
        const SimdReason reason = simd_reason();
        return nb::make_tuple(reason.forced, name_of(reason.best), reason.pdep_cost,
                              reason.next_level_lacks);
      },
      nb::sig("def simd_reason() -> tuple[bool, str, float, str]"),
      "Whether the SIMD level is forced, the best level, pdep's cost, what the next higher level "
      "would need.");
  module.def("byte_size_of_text", &byte_size_of_text, nb::arg("text"),
             "Bytes from \"2 GB\", \"512 MiB\", \"1000\"; None for other text.");
  module.def("simd_levels", &simd_levels, "The instruction sets of this CPU, slowest first.");
  module.def(
      "set_simd_level", &set_simd_level_by_name, nb::arg("name"),
      "For tests and benchmarks, while no loader runs. Results are equal on all SIMD levels.");
}

}  // namespace headrace::python
