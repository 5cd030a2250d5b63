// SPDX-License-Identifier: Apache-2.0
// Small functions of the engine that Python code also needs.
#include <sched.h>

#include <optional>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/base/process_limits.h"
#include "headrace/kernels/content_hash.h"
#include "headrace/storage/crc32c.h"

namespace headrace::python {

void bind_tools(nb::module_& module) {
  module.def(
      "crc32c",
      [](const nb::bytes& data) {
        const auto* bytes = static_cast<const uint8_t*>(data.data());
        const size_t size = data.size();
        ReleasedGil no_gil;
        return crc32c({bytes, size});
      },
      nb::arg("data"), "CRC-32C (Castagnoli) of some bytes.");
  module.def(
      "content_hash",
      [](nb::handle object) {
        const ExportedBuffer exported(object, PyBUF_C_CONTIGUOUS);
        ReleasedGil no_gil;
        return content_hash(exported.bytes());
      },
      nb::arg("data"),
      "A hash of the bytes of an array, or of any object with a contiguous buffer.");
  module.def(
      "allowed_cores", [] { return allowed_cores().count(); },
      "Cores that this process may use, by affinity and by its cgroup's quota.");
  module.def(
      "cores_beyond_inherited",
      [] {
        std::vector<size_t> numbers;
        const std::optional<cpu_set_t> cores = cores_beyond_inherited();
        for (size_t core = 0; cores && core < CPU_SETSIZE; ++core) {
          if (CPU_ISSET(core, &*cores)) numbers.push_back(core);
        }
        return numbers;
      },
      "Cores for a process started on this thread if it would otherwise inherit the single core "
      "to which OpenMP has bound the thread; otherwise none.");
}

}  // namespace headrace::python
