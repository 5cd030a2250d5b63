// SPDX-License-Identifier: Apache-2.0
#include "headrace/base/openmp_places.h"

#include <dlfcn.h>
#include <link.h>
#include <strings.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>

#include "headrace/base/mutex.h"

namespace headrace {
namespace {

bool binding_requested() {
  if (const char* bind = std::getenv("OMP_PROC_BIND")) return strcasecmp(bind, "false") != 0;
  for (const char* name : {"OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    if (std::getenv(name)) return true;
  }
  return false;
}

// Paths of libgomp, libomp and libiomp5 as loaded: Python hides their symbols.
std::vector<std::string> loaded_runtimes() {
  std::vector<std::string> paths;
  auto look = [](dl_phdr_info* library, size_t, void* found) {
    const std::string_view path = library->dlpi_name;
    const std::string_view name = path.substr(path.rfind('/') + 1);
    for (const char* runtime : {"libgomp", "libomp", "libiomp5"}) {
      if (name.starts_with(runtime)) {
        static_cast<std::vector<std::string>*>(found)->emplace_back(path);
      }
    }
    return 0;
  };
  dl_iterate_phdr(look, &paths);
  return paths;
}

template <typename Function>
Function* function_of(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// A single place is not a division: it is all that the process has.
std::vector<cpu_set_t> places_of(void* runtime) {
  auto* count_places = function_of<int()>(runtime, "omp_get_num_places");
  auto* count_cores = function_of<int(int)>(runtime, "omp_get_place_num_procs");
  auto* get_cores = function_of<void(int, int*)>(runtime, "omp_get_place_proc_ids");
  if (!count_places || !count_cores || !get_cores) return {};
  const int count = count_places();
  std::vector<cpu_set_t> places;
  for (int place = 0; count > 1 && place < count; ++place) {
    std::vector<int> cores(static_cast<size_t>(std::max(0, count_cores(place))));
    if (!cores.empty()) get_cores(place, cores.data());
    cpu_set_t& set = places.emplace_back();
    CPU_ZERO(&set);
    for (const int core : cores) {
      if (core >= 0 && core < CPU_SETSIZE) CPU_SET(static_cast<size_t>(core), &set);
    }
  }
  return places;
}

}  // namespace

std::vector<cpu_set_t> openmp_places() {
  if (!binding_requested()) return {};
  // Queried until there is an answer, which is then cached: Intel's and LLVM's runtimes adopt the
  // calling thread as one of theirs, which should be Python's thread, not one of the engine's.
  static Mutex mutex;
  static std::vector<cpu_set_t> known;
  MutexLock lock(mutex);
  if (!known.empty()) return known;
  for (const std::string& path : loaded_runtimes()) {
    void* runtime = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!runtime) continue;
    for (const cpu_set_t& place : places_of(runtime)) known.push_back(place);
    dlclose(runtime);
  }
  return known;
}

cpu_set_t widened(const cpu_set_t& own, const std::vector<cpu_set_t>& places) {
  cpu_set_t all = own;
  bool bound = false;
  for (const cpu_set_t& place : places) {
    cpu_set_t both;
    CPU_AND(&both, &own, &place);
    bound = bound || CPU_EQUAL(&both, &own);
    CPU_OR(&all, &all, &place);
  }
  return bound && CPU_COUNT(&own) > 0 ? all : own;
}

}  // namespace headrace
