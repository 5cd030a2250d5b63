// SPDX-License-Identifier: Apache-2.0
// Plug-ins: loaded by path, and their contents.
#include "bindings/bindings.h"
#include "headrace/plugin/loaded_plugins.h"

namespace headrace::python {
namespace {

nb::dict facts_of(const Plugin& plugin) {
  nb::dict out = describe(plugin.origin);
  out["help"] = plugin.help;
  const auto names = [](const auto& parts) {
    nb::list list;
    for (const auto& part : parts) list.append(nb::cast(part->record.name));
    return list;
  };
  out["transforms"] = names(plugin.transforms);
  out["codecs"] = names(plugin.codecs);
  out["storages"] = names(plugin.storages);
  out["samplers"] = names(plugin.samplers);
  out["formats"] = names(plugin.formats);
  return out;
}

nb::dict loaded(nb::handle path, bool check) {
  return facts_of(load_plugin(bytes_from_str(path), check));
}

void require(nb::handle name, nb::handle version, nb::handle path, nb::handle fingerprint,
             bool load) {
  require_plugin({.plugin = bytes_from_str(name),
                  .version = bytes_from_str(version),
                  .path = bytes_from_str(path),
                  .fingerprint = bytes_from_str(fingerprint)},
                 load);
}

}  // namespace

void bind_plugin(nb::module_& module) {
  module.def(
      "load_plugin", &loaded, nb::arg("path"), nb::arg("check"),
      nb::sig("def load_plugin(path: str, check: bool) -> dict[str, typing.Any]"),
      "Loads a plug-in: its name, version, path, fingerprint, help, and the names of its parts.");
  module.def(
      "require_plugin", &require, nb::arg("name"), nb::arg("version"), nb::arg("path"),
      nb::arg("fingerprint"), nb::arg("load"),
      nb::sig("def require_plugin(name: str, version: str, path: str, fingerprint: str, "
              "load: bool) -> None"),
      "Makes sure that the plug-in with this fingerprint is loaded. Raises ConfigError HR0578 if "
      "the file has a different fingerprint, or is not loaded and load is False.");
  module.attr("PLUGIN_ABI") = HEADRACE_PLUGIN_ABI;
}

}  // namespace headrace::python
