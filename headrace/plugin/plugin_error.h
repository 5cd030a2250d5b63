// SPDX-License-Identifier: Apache-2.0
// Errors for invalid results and failures of plug-ins. Callable from any thread.
#pragma once

#include <string>
#include <string_view>

#include "headrace/base/error.h"
#include "headrace/ops/op.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/plugin_call.h"

namespace headrace {

// What an error is about: the transform Vignette of a plug-in.
struct PluginPart {
  std::string kind, name;
  const OpOrigin* origin = nullptr;

  // The prefix of messages: "[Vignette] ", "[codec qoi] ".
  std::string who() const { return "[" + (kind == "transform" ? name : kind + " " + name) + "] "; }
  std::string text() const { return kind + " " + name; }
  // "decode() of the codec qoi of the plug-in ..."
  std::string call(std::string_view function) const;
};

// "plug-in mine (/path/libmine.so)", for messages.
std::string text_of(const OpOrigin& origin);

// HR0573: arguments that a plug-in rejects; it gives the reason.
Error rejected_arguments(const PluginPart& part, const std::string& why);
// HR0575: the plug-in broke a rule of headrace/plugin.h.
Error broken_plugin(const PluginPart& part, const std::string& what);
// The error for a status other than HEADRACE_OK: HR0574 for a bad record, otherwise HR0575. `what`:
// the function, "run()".
Error plugin_failure(const PluginPart& part, int32_t status, const PluginMessage& message,
                     std::string_view what);

// Creates an object with create(), which `create` calls: (error) -> status. Throws HR0573 if it
// rejects its arguments, HR0575 if it throws.
template <class Create>
void create_plugin_object(const PluginPart& part, const Create& create) {
  PluginMessage message;
  const std::string name = part.call("create()");
  const RunningCall running(name);
  const int32_t status = message.status_of([&] { return create(message.get()); });
  if (status == HEADRACE_OK) return;
  if (message.threw()) throw Exception(plugin_failure(part, status, message, "create()"));
  const std::string said = message.text();
  throw Exception(rejected_arguments(part, said.empty() ? "it did not give a reason" : said));
}

// Calls destroy(), if there is one; reports an exception on stderr.
void destroy_plugin_object(const PluginPart& part, void (*destroy)(void* self), void* self);

}  // namespace headrace
