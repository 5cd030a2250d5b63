// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/plugin_error.h"

#include <cstdio>

namespace headrace {
namespace {

const ErrorCode kRejectedArguments{
    "HR0573", ErrorKind::kConfig, "plug-in rejected its arguments",
    "A part of a plug-in rejected its arguments, or a transform rejected the fields it was applied "
    "to. The message comes from the plug-in."};

const ErrorCode kBadRecord{
    "HR0574", ErrorKind::kData, "plug-in rejected a record",
    "A part of a plug-in returned HEADRACE_BAD_RECORD for this record, with this message. "
    "on_error= decides, as for a damaged file."};

const ErrorCode kBroken{
    "HR0575", ErrorKind::kConfig, "plug-in failed",
    "A part of a plug-in failed, or violated its declaration or headrace/plugin.h: a wrong shape "
    "or dtype, an invalid size or index, an exception thrown across the C interface, or bytes "
    "written outside its output. The run ends, because memory may be corrupt. hr.load_plugin(path, "
    "check=True) checks each call more closely."};

std::string origin_of(const PluginPart& part) { return "it is of the " + text_of(*part.origin); }

}  // namespace

std::string text_of(const OpOrigin& origin) {
  return "plug-in " + origin.plugin + " (" + origin.path + ")";
}

std::string PluginPart::call(std::string_view function) const {
  return std::string(function) + " of the " + text() + " of the " + text_of(*origin);
}

Error rejected_arguments(const PluginPart& part, const std::string& why) {
  return {.code = &kRejectedArguments, .what = part.who() + why, .hint = origin_of(part)};
}

Error broken_plugin(const PluginPart& part, const std::string& what) {
  return {.code = &kBroken, .what = part.who() + what, .hint = origin_of(part)};
}

Error plugin_failure(const PluginPart& part, int32_t status, const PluginMessage& message,
                     std::string_view what) {
  std::string said = message.text();
  const bool silent = said.empty();
  if (silent) said = "it did not give a reason (status " + std::to_string(status) + ")";
  if (status == HEADRACE_BAD_RECORD) {
    return {.code = &kBadRecord, .what = part.who() + said, .hint = origin_of(part)};
  }
  if (message.threw()) {
    return broken_plugin(part, std::string(what) + " threw an exception" +
                                   (silent ? "" : ": " + said) +
                                   "; none may cross the C interface: headrace/plugin.hpp catches "
                                   "them");
  }
  if (status == HEADRACE_FAILED || status == HEADRACE_BAD_ARGUMENTS)
    return broken_plugin(part, said);
  return broken_plugin(part, std::string(what) + " returned the status " + std::to_string(status) +
                                 ", which is undefined" + (silent ? "" : ": " + said));
}

void destroy_plugin_object(const PluginPart& part, void (*destroy)(void* self), void* self) {
  if (!destroy) return;
  PluginMessage message;
  message.status_of([&] {
    destroy(self);
    return 0;
  });
  if (!message.threw()) return;
  std::fprintf(stderr, "Headrace: destroy() of the %s threw an exception: %s\n",
               part.text().c_str(), message.text().c_str());
}

}  // namespace headrace
