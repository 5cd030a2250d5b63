// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/curl_functions.h"

#include <dlfcn.h>

#include <string>

namespace headrace {
namespace {

const ErrorCode kNoCurl{
    "HR0220", ErrorKind::kConfig, "libcurl is missing",
    "URLs (https://, s3://) are read through libcurl, which is loaded on first use. It is "
    "not installed, or could not be loaded. On Debian and Ubuntu: apt-get install libcurl4; on "
    "Fedora: dnf install libcurl."};

struct Opened {
  Curl curl{};
  std::string problem;
};

template <class Function>
void find(void* library, Function*& function, const char* name, std::string& problem) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (!function && problem.empty()) problem = std::string("it has no function ") + name;
}

Opened open_library() {
  Opened out;
  void* library = nullptr;
  // The second one is built with GnuTLS and has the same interface.
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library) break;
    const char* why = dlerror();
    if (out.problem.empty()) out.problem = why ? why : name;
  }
  if (!library) return out;
  out.problem.clear();
  Curl& curl = out.curl;
  const auto find_as = [&](auto*& function, const char* name) {
    find(library, function, name, out.problem);
  };
  find_as(curl.global_init, "curl_global_init");
  find_as(curl.easy_init, "curl_easy_init");
  find_as(curl.easy_cleanup, "curl_easy_cleanup");
  find_as(curl.easy_setopt, "curl_easy_setopt");
  find_as(curl.easy_getinfo, "curl_easy_getinfo");
  find_as(curl.easy_strerror, "curl_easy_strerror");
  find_as(curl.multi_init, "curl_multi_init");
  find_as(curl.multi_cleanup, "curl_multi_cleanup");
  find_as(curl.multi_setopt, "curl_multi_setopt");
  find_as(curl.multi_add_handle, "curl_multi_add_handle");
  find_as(curl.multi_remove_handle, "curl_multi_remove_handle");
  find_as(curl.multi_socket_action, "curl_multi_socket_action");
  find_as(curl.multi_assign, "curl_multi_assign");
  find_as(curl.multi_info_read, "curl_multi_info_read");
  find_as(curl.slist_append, "curl_slist_append");
  find_as(curl.slist_free_all, "curl_slist_free_all");
  if (out.problem.empty() && curl.global_init(Curl::kAllProtocols) != Curl::kOk) {
    out.problem = "it could not be initialized";
  }
  return out;
}

}  // namespace

Result<const Curl*> Curl::opened() {
  static const Opened& library = *new Opened(open_library());
  if (library.problem.empty()) return &library.curl;
  return Error{.code = &kNoCurl,
               .what = "libcurl could not be loaded: " + library.problem,
               .hint = "apt-get install libcurl4"};
}

}  // namespace headrace
