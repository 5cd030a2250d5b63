// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/declared.h"

#include <string_view>

#include "headrace/base/registry.h"
#include "headrace/plugin/plugin_error.h"

namespace headrace {
namespace {

// Sizes of version 1; later versions append. Members up to here must be present.
constexpr uint32_t kFirstPlugin = 48, kFirstTransform = 80, kFirstCodec = 80, kFirstStorage = 64,
                   kFirstSampler = 80, kFirstFormat = 80;
static_assert(sizeof(headrace_plugin) >= kFirstPlugin);
static_assert(sizeof(headrace_transform) >= kFirstTransform);
static_assert(sizeof(headrace_codec) >= kFirstCodec);
static_assert(sizeof(headrace_storage) >= kFirstStorage);
static_assert(sizeof(headrace_sampler) >= kFirstSampler);
static_assert(sizeof(headrace_format) >= kFirstFormat);

constexpr uint32_t kKinds = 255, kImageDtypes = 31;
constexpr uint32_t kFlags = HEADRACE_VALUES | HEADRACE_MOVES | HEADRACE_RANDOM;
constexpr uint32_t kMaxParts = 1000;

std::string owner_of_name(const std::string& name) {
  // Names in headrace.transforms that are not operators, including what it imports.
  for (const char* const own : {"Any", "Iterable", "Mapping", "Python", "Transform"}) {
    if (name == own) return "Headrace's own";
  }
  const OpRecord* const known = Registry<OpRecord>::find(name);
  if (!known) return {};
  return known->origin ? "in the " + text_of(*known->origin) : "Headrace's own";
}

void check_transform_flags(const headrace_transform& table, const DeclarationCheck& check) {
  const bool values = table.flags & HEADRACE_VALUES, moves = table.flags & HEADRACE_MOVES;
  if (values == moves)
    check.refuse(
        "flags must have exactly one of HEADRACE_VALUES (objects in an image stay in place) and "
        "HEADRACE_MOVES (they move)");
  check.check_flags(table.flags, kFlags);
  check.check_flags(table.kinds, kKinds, "kinds");
  check.check_flags(table.image_dtypes, kImageDtypes, "image_dtypes");
  if (table.kinds == 0) check.refuse("kinds is 0, so it would not act on any field");
  if (moves && !(table.kinds & HEADRACE_IMAGE))
    check.refuse("flags has HEADRACE_MOVES, but kinds lacks HEADRACE_IMAGE");
}

std::string_view doc_of(const headrace_transform& table, const Plugin& plugin, PluginTransform& out,
                        const DeclarationCheck& check) {
  std::string doc = check.text(table.help, "its help");
  const auto moving = [&](std::string_view what, uint32_t kind) {
    return (table.kinds & kind) == 0 ? std::string() : std::string(what) + ", ";
  };
  if (table.flags & HEADRACE_MOVES) {
    std::string along = moving("masks", HEADRACE_MASK) + moving("boxes", HEADRACE_BOXES) +
                        moving("keypoints", HEADRACE_KEYPOINTS) + moving("planes", HEADRACE_MASKS);
    if (!along.empty()) along.resize(along.size() - 2);
    doc += along.empty()
               ? "\n\nIt moves images only: records with boxes, masks or keypoints are rejected."
               : "\n\nIt moves images, and with them " + along + ".";
  }
  doc += origin_line(plugin);
  return out.texts.emplace_back(std::move(doc));
}

std::unique_ptr<PluginTransform> declared_transform(DeclarationCheck& check,
                                                    const headrace_transform& table,
                                                    const Plugin& plugin) {
  auto out = std::make_unique<PluginTransform>();
  out->plugin = &plugin;
  out->table = table;
  const std::string& name = out->texts.emplace_back(check.text(table.name, "a transform's name"));
  if (!is_class_name(name))
    check.refuse("the transform \"" + name +
                 "\" must be named like a class: a capital, then letters, digits and _");
  if (has_part(plugin.transforms, name))
    check.refuse("it has two transforms called \"" + name + "\"");
  if (const std::string where = owner_of_name(name); !where.empty())
    check.refuse("its transform \"" + name + "\" has the same name as one that is " + where,
                 "give it another name, for example with the plug-in's name as a prefix");
  check.set_subject(name);
  check_transform_flags(table, check);
  check.check_function(table.run, "run");
  if (table.shape) check.check_function(table.shape, "shape");
  if (table.create) check.check_function(table.create, "create");
  if (table.destroy) check.check_function(table.destroy, "destroy");
  if (table.params.count > 0 && !table.create)
    check.refuse("it has parameters, but create is NULL");
  OpRecord& record = out->record;
  record.name = name;
  record.doc = doc_of(table, plugin, *out, check);
  record.random = (table.flags & HEADRACE_RANDOM) != 0;
  record.origin = &plugin.origin;
  record.params = check.params(table.params, out->texts);
  const PluginTransform* const transform = out.get();
  record.make = [transform](const Arguments& arguments) -> std::unique_ptr<Op> {
    return make_plugin_op(*transform, arguments);
  };
  return out;
}

// The parts of a list, each of which may look at those before it.
template <class List, class Part>
void declare_all(DeclarationCheck& check, const List& list, uint32_t first, const char* what,
                 const Plugin& plugin, std::vector<std::unique_ptr<Part>>& out, const auto& one) {
  check.check_list(list.data, list.count, list.size, first, kMaxParts, what);
  for (uint32_t i = 0; i < list.count; ++i) {
    check.set_subject("");
    out.push_back(one(check, copy_of(list, i), plugin));
  }
  check.set_subject("");
}

}  // namespace

std::string origin_line(const Plugin& plugin) {
  return "\n\nFrom the plug-in " + plugin.origin.plugin + " " + plugin.origin.version + ".";
}

std::unique_ptr<Plugin> declared(const headrace_plugin& given, const std::string& path,
                                 const std::string& fingerprint) {
  DeclarationCheck check(path);
  if (given.struct_size < kFirstPlugin)
    check.refuse("its table has " + std::to_string(given.struct_size) +
                 " bytes, but version 1 has " + std::to_string(kFirstPlugin));
  headrace_plugin table{};
  std::memcpy(&table, &given, std::min<size_t>(sizeof table, given.struct_size));
  auto out = std::make_unique<Plugin>();
  out->origin = {.plugin = check.text(table.name, "the plug-in's name"),
                 .version = check.text(table.version, "the plug-in's version"),
                 .path = path,
                 .fingerprint = fingerprint};
  if (!is_lowercase_name(out->origin.plugin, "-_"))
    check.refuse("the plug-in's name \"" + out->origin.plugin +
                 "\" must consist of a-z, 0-9, - and _");
  out->help = table.help ? check.text(table.help, "the plug-in's help") : "";
  declare_all(check, table.transforms, kFirstTransform, "transforms", *out, out->transforms,
              declared_transform);
  declare_all(check, table.codecs, kFirstCodec, "codecs", *out, out->codecs, declared_codec);
  declare_all(check, table.storages, kFirstStorage, "storages", *out, out->storages,
              declared_storage);
  declare_all(check, table.samplers, kFirstSampler, "samplers", *out, out->samplers,
              declared_sampler);
  declare_all(check, table.formats, kFirstFormat, "formats", *out, out->formats, declared_format);
  if (out->transforms.empty() && out->codecs.empty() && out->storages.empty() &&
      out->samplers.empty() && out->formats.empty()) {
    check.refuse("it has no parts");
  }
  return out;
}

void register_parts(const Plugin& plugin) {
  for (const auto& part : plugin.transforms) Registry<OpRecord>::add(part->record);
  for (const auto& part : plugin.codecs) Registry<CodecRecord>::add(part->record);
  for (const auto& part : plugin.storages) Registry<StorageRecord>::add(part->record);
  for (const auto& part : plugin.samplers) Registry<SamplerRecord>::add(part->record);
  for (const auto& part : plugin.formats) Registry<FormatRecord>::add(part->record);
}

}  // namespace headrace
