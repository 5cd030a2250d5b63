// SPDX-License-Identifier: Apache-2.0
// A plug-in's table, checked and converted to the records with which the engine's own parts are
// registered.
//
// Made once and never freed. Immutable except for `checked`, which any thread may set.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "headrace/codecs/codec.h"
#include "headrace/formats/format.h"
#include "headrace/ops/op.h"
#include "headrace/plugin.h"
#include "headrace/plugin/declaration_check.h"
#include "headrace/sampling/sampler_record.h"
#include "headrace/storage/storage.h"

namespace headrace {

struct Plugin;

struct PluginTransform {
  const Plugin* plugin = nullptr;
  headrace_transform table{};  // members that the library does not have are zero
  OpRecord record;
  std::deque<std::string> texts;  // texts that the record points to
};

struct PluginCodec {
  const Plugin* plugin = nullptr;
  headrace_codec table{};
  CodecRecord record;
  std::deque<std::string> texts;
};

struct PluginStorage {
  const Plugin* plugin = nullptr;
  headrace_storage table{};
  StorageRecord record;
  std::deque<std::string> texts;
};

struct PluginSampler {
  const Plugin* plugin = nullptr;
  headrace_sampler table{};
  SamplerRecord record;
  std::deque<std::string> texts;
};

struct PluginFormat {
  const Plugin* plugin = nullptr;
  headrace_format table{};
  FormatRecord record;
  std::deque<std::string> texts;
};

struct Plugin {
  OpOrigin origin;
  std::string help;
  std::vector<std::unique_ptr<PluginTransform>> transforms;
  std::vector<std::unique_ptr<PluginCodec>> codecs;
  std::vector<std::unique_ptr<PluginStorage>> storages;
  std::vector<std::unique_ptr<PluginSampler>> samplers;
  std::vector<std::unique_ptr<PluginFormat>> formats;
  std::atomic<bool> checked = false;  // Note [Checked calls] in checked_call.h
};

// Throws HR0572 for a table that violates the rules of headrace/plugin.h: names, missing functions,
// parameters, sizes. Registers nothing.
std::unique_ptr<Plugin> declared(const headrace_plugin& table, const std::string& path,
                                 const std::string& fingerprint);
// The last line of the documentation of its parts.
std::string origin_line(const Plugin& plugin);
// Whether one of these parts has the name.
template <class Part>
bool has_part(const std::vector<std::unique_ptr<Part>>& parts, std::string_view name) {
  return std::ranges::any_of(parts, [&](const auto& part) { return part->record.name == name; });
}
// Registers its parts.
void register_parts(const Plugin& plugin);

// From plugin_codec.cc, plugin_storage.cc and so on.
std::unique_ptr<PluginCodec> declared_codec(DeclarationCheck& check, const headrace_codec& table,
                                            const Plugin& plugin);
std::unique_ptr<PluginStorage> declared_storage(DeclarationCheck& check,
                                                const headrace_storage& table,
                                                const Plugin& plugin);
std::unique_ptr<PluginSampler> declared_sampler(DeclarationCheck& check,
                                                const headrace_sampler& table,
                                                const Plugin& plugin);
std::unique_ptr<PluginFormat> declared_format(DeclarationCheck& check, const headrace_format& table,
                                              const Plugin& plugin);

// A transform of a plug-in as an operator (plugin_op.cc): passes fields as views, and checks the
// results. The operator with these parameters. Throws HR0573 if the plug-in rejects them. REQUIRES:
// the transform outlives the operator.
std::unique_ptr<Op> make_plugin_op(const PluginTransform& transform, const Arguments& arguments);

}  // namespace headrace
