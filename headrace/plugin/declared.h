// SPDX-License-Identifier: Apache-2.0
// A plug-in's table, checked and turned into operators as the engine declares them.
//
// Made once and never freed. Immutable but for `checked`, which any thread may set.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "headrace/ops/op.h"
#include "headrace/plugin.h"

namespace headrace {

struct Plugin;

struct PluginTransform {
  const Plugin* plugin = nullptr;
  headrace_transform table{};  // what the library does not know is zero
  OpRecord record;
  std::deque<std::string> texts;  // what the record points to
};

struct Plugin {
  OpOrigin origin;
  std::string help;
  std::vector<std::unique_ptr<PluginTransform>> transforms;
  std::atomic<bool> checked = false;  // Note [Checked calls] in checked_call.h
};

// Throws HR0572 for a table that breaks the rules of headrace/plugin.h: names, missing functions,
// parameters, sizes. `taken(name)`: where a transform of this name is from; "" where it is free.
std::unique_ptr<Plugin> declared(const headrace_plugin& table, const std::string& path,
                                 const std::string& fingerprint,
                                 std::string (*taken)(const std::string& name));

// "plug-in mine (/path/libmine.so)", for messages.
std::string text_of(const OpOrigin& origin);

}  // namespace headrace
