// SPDX-License-Identifier: Apache-2.0
// Formats of plug-ins: the plug-in finds the ranges of records when a path is opened, and the
// fields in a range; the engine reads (formats/shards/extent_source.h).
#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/base/random.h"
#include "headrace/base/registry.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/shards/extent_source.h"
#include "headrace/plugin/checked_call.h"
#include "headrace/plugin/declared.h"
#include "headrace/plugin/plugin_error.h"
#include "headrace/plugin/plugin_opening.h"
#include "headrace/sources/readable_text.h"
#include "headrace/storage/file.h"

namespace headrace {
namespace {

constexpr size_t kFirstBytes = 64;

const ErrorCode kDamaged{
    "HR0581", ErrorKind::kData, "plug-in reported a damaged record",
    "The format of a plug-in returned HEADRACE_BAD_RECORD for this record, with this message. "
    "on_error= decides."};

const ErrorCode kNotOpened{
    "HR0582", ErrorKind::kConfig, "plug-in cannot open a path",
    "The format of a plug-in rejected the files at this path, with this message. They are damaged, "
    "or of a different format."};

PluginPart part_of(const PluginFormat& format) {
  return {"format", std::string(format.record.name), &format.plugin->origin};
}

// The object of open(), shared by all users of the source.
struct OpenedFormat {
  OpenedFormat(const PluginFormat& given, void* object) : format(given), self(object) {}
  ~OpenedFormat() { destroy_plugin_object(part_of(format), format.table.close, self); }
  OpenedFormat(const OpenedFormat&) = delete;
  OpenedFormat& operator=(const OpenedFormat&) = delete;
  const PluginFormat& format;
  void* const self;
};

class PluginSource final : public ExtentSource {
 public:
  PluginSource(std::unique_ptr<OpenedFormat> opened, const std::string& path,
               std::unique_ptr<FileSet> files, ContainerIndex index, Schema schema)
      : ExtentSource(std::move(files), std::move(index), std::move(schema)),
        opened_(std::move(opened)),
        part_(part_of(opened_->format)),
        description_(described(part_.name, path)) {}

  std::string description() const override { return description_; }
  // Another build of the plug-in may find other fields.
  uint64_t fingerprint() const override {
    return mix64(ExtentSource::fingerprint(), hash_name(part_.origin->fingerprint));
  }

 private:
  size_t buffers() const override { return 1 + schema().size(); }
  Result<void> parse(int64_t record, std::span<const uint8_t> bytes,
                     const std::vector<bool>& wanted, RecordData& out) const override;
  // Takes the cells into `out`; `from`: the bytes that the plug-in saw, those of `bytes` or a copy.
  std::string take(std::span<const headrace_cell> cells, const uint8_t* from,
                   std::span<const uint8_t> bytes, const std::vector<bool>& wanted,
                   RecordData& out) const;
  std::string take_shape(const headrace_cell& cell, const Field& field, FieldData& out) const;

  const std::unique_ptr<OpenedFormat> opened_;
  const PluginPart part_;
  const std::string description_;
};

std::string PluginSource::take_shape(const headrace_cell& cell, const Field& field,
                                     FieldData& out) const {
  Shape shape;
  uint64_t bytes = size_of(field.dtype);
  for (size_t i = 0; i < field.shape.size(); ++i) {
    const int64_t extent = cell.shape[i];
    if (extent < 0 || (field.shape[i] >= 0 && extent != field.shape[i]) ||
        __builtin_mul_overflow(bytes, uint64_t(extent), &bytes)) {
      return "parse() returned an invalid shape of the field \"" + field.name + "\"";
    }
    shape.push_back(extent);
  }
  if (bytes != cell.bytes)
    return "parse() returned " + std::to_string(cell.bytes) + " bytes for the field \"" +
           field.name + "\", whose shape has " + std::to_string(bytes);
  if (std::ranges::count(field.shape, -1) > 0) out.shape = std::move(shape);
  return {};
}

std::string PluginSource::take(std::span<const headrace_cell> cells, const uint8_t* from,
                               std::span<const uint8_t> bytes, const std::vector<bool>& wanted,
                               RecordData& out) const {
  for (size_t i = 0; i < cells.size(); ++i) {
    const Field& field = schema()[i];
    const headrace_cell& cell = cells[i];
    if (!wanted[i]) continue;
    if (field.kind == FieldKind::kLabel) {
      out.fields[i].scalar = cell.integer;
      continue;
    }
    const auto inside = [&](const uint8_t* data, size_t size) {
      const auto begin = reinterpret_cast<uintptr_t>(data);
      const auto at = reinterpret_cast<uintptr_t>(cell.data);
      return at >= begin && at - begin <= size && cell.bytes <= size - (at - begin);
    };
    const Buffer& own = out.owned[1 + i];
    if (cell.bytes == 0) {
      out.fields[i].bytes = {};
    } else if (inside(from, bytes.size())) {
      out.fields[i].bytes = bytes.subspan(size_t(cell.data - from), size_t(cell.bytes));
    } else if (own.data() && inside(own.data(), own.size())) {
      out.fields[i].bytes = own.bytes().subspan(size_t(cell.data - own.data()), cell.bytes);
      const std::span<const uint8_t> after(own.data() + own.size(), Buffer::kPadding);
      if (std::ranges::any_of(after, [](uint8_t byte) { return byte != 0; }))
        return "parse() wrote past the memory of the field \"" + field.name + "\"";
    } else {
      return "parse() returned " + std::to_string(cell.bytes) + " bytes of the field \"" +
             field.name + "\" that are neither in the record nor from allocate()";
    }
    if (field.kind == FieldKind::kTensor) {
      if (std::string wrong = take_shape(cell, field, out.fields[i]); !wrong.empty()) return wrong;
    }
    if (field.kind == FieldKind::kText && !is_utf8(out.fields[i].bytes))
      return "parse() returned text of the field \"" + field.name + "\" that is not UTF-8";
  }
  return {};
}

Result<void> PluginSource::parse(int64_t record, std::span<const uint8_t> bytes,
                                 const std::vector<bool>& wanted, RecordData& out) const {
  const headrace_format& table = opened_->format.table;
  std::vector<headrace_cell> cells(schema().size());
  headrace_opened memory{.buffers = std::span(out.owned).subspan(1, schema().size()),
                         .max_bytes = std::min(uint64_t{out.max_bytes}, uint64_t{INT64_MAX})};
  PluginMessage message;
  std::string wrong;
  const auto once = [&](const void* from, void*) {
    for (size_t i = 0; i < cells.size(); ++i) {
      cells[i] = {};
      cells[i].wanted = wanted[i];
      std::ranges::copy(schema()[i].shape, cells[i].shape);
      memory.buffers[i].resize(0);
    }
    const auto* data = static_cast<const uint8_t*>(from);
    const headrace_parse work{.struct_size = sizeof work,
                              .count = uint32_t(cells.size()),
                              .record = record,
                              .bytes = {data, bytes.size()},
                              .cells = cells.data(),
                              .opened = &memory,
                              .allocate = allocate_cell};
    const int32_t status =
        message.status_of([&] { return table.parse(opened_->self, &work, message.get()); });
    if (status == HEADRACE_OK && wrong.empty()) wrong = take(cells, data, bytes, wanted, out);
    return status;
  };
  int32_t status = 0;
  if (opened_->format.plugin->checked.load(std::memory_order_relaxed)) {
    const std::string name = part_.call("parse()") + ", record " + std::to_string(record);
    std::string broken;
    status = checked_call(bytes, {}, 1, name, once, broken);
    if (!broken.empty()) return broken_plugin(part_, "parse() " + broken);
  } else {
    status = once(bytes.data(), nullptr);
  }
  if (memory.thrown) std::rethrow_exception(memory.thrown);
  if (!memory.wrong.empty()) return broken_plugin(part_, memory.wrong);
  if (memory.refused) {
    const auto [number, size] = *memory.refused;
    return too_large(
        "the field \"" + schema()[number].name + "\" has " + std::to_string(size) + " bytes, but " +
        (size > memory.max_bytes ? "the limit is " + with_commas(int64_t(memory.max_bytes))
                                 : "there is not enough memory for them"));
  }
  if (!wrong.empty()) return broken_plugin(part_, wrong);
  if (status == HEADRACE_OK) return {};
  Error error = plugin_failure(part_, status, message, "parse()");
  if (status == HEADRACE_BAD_RECORD) error.code = &kDamaged;
  return error;
}

SourcePtr open_by_plugin(const PluginFormat& format, const std::string& path,
                         const Arguments& arguments) {
  const PluginPart part = part_of(format);
  const std::vector<headrace_value> values = values_of(format.record.params, arguments);
  headrace_opened added;
  const headrace_opening opening = opening_of(added);
  void* self = nullptr;
  PluginMessage message;
  const std::string name = part.call("open()");
  const RunningCall running(name);
  const int32_t status = message.status_of([&] {
    return format.table.open(values.data(), uint32_t(values.size()), path.c_str(), &opening, &self,
                             message.get());
  });
  std::unique_ptr<OpenedFormat> opened;
  if (status == HEADRACE_OK) opened = std::make_unique<OpenedFormat>(format, self);
  if (added.thrown) std::rethrow_exception(added.thrown);
  if (!opened) {
    if (!added.wrong.empty()) throw Exception(broken_plugin(part, "open(): " + added.wrong));
    if (added.failed && !message.threw()) throw Exception(*std::move(added.failed));
    Error error = plugin_failure(part, status, message, "open()");
    if (status == HEADRACE_BAD_ARGUMENTS) error = rejected_arguments(part, message.text());
    if (status == HEADRACE_BAD_RECORD) error.code = &kNotOpened;
    error.where.file = path;
    throw Exception(std::move(error));
  }
  if (!added.wrong.empty()) throw Exception(broken_plugin(part, "open(): " + added.wrong));
  if (added.schema.empty() || added.files.empty())
    throw Exception(broken_plugin(part, "open() added no column or no file"));
  added.index.records.end_file();
  added.index.records.shrink();
  auto files = std::make_unique<FileSet>(std::move(added.files));
  const Extents& records = added.index.records;
  for (int64_t i = 0; i < records.size(); ++i) {
    const Extent extent = records[i];
    if (extent.offset + extent.bytes <= files->identity(extent.file).size) continue;
    throw Exception(broken_plugin(part, "open() added the record " + std::to_string(i) + " with " +
                                            std::to_string(extent.bytes) + " bytes from " +
                                            std::to_string(extent.offset) + " on, but " +
                                            files->path(extent.file) + " has " +
                                            std::to_string(files->identity(extent.file).size)));
  }
  return std::make_shared<PluginSource>(std::move(opened), path, std::move(files),
                                        std::move(added.index), std::move(added.schema));
}

bool recognized(const PluginFormat& format, const std::string& path) {
  std::array<uint8_t, kFirstBytes> first{};
  headrace_bytes bytes{};
  if (!is_folder(path)) {
    const Result<size_t> count = read_prefix(path, first);
    if (!count) return false;
    bytes = {first.data(), *count};
  }
  const std::string name = part_of(format).call("recognizes()");
  const RunningCall running(name);
  PluginMessage message;  // an exception is a no
  return message.status_of([&] { return format.table.recognizes(path.c_str(), &bytes); }) == 1;
}

}  // namespace

std::unique_ptr<PluginFormat> declared_format(DeclarationCheck& check, const headrace_format& table,
                                              const Plugin& plugin) {
  auto out = std::make_unique<PluginFormat>();
  out->plugin = &plugin;
  out->table = table;
  const std::string& name = out->texts.emplace_back(check.function_name(table.name, "format"));
  if (has_part(plugin.formats, name) || Registry<FormatRecord>::find(name))
    check.refuse("there already is a format \"" + name + "\"");
  check.set_subject("format " + name);
  check.check_flags(table.flags, 0);
  check.check_function(table.recognizes, "recognizes");
  check.check_function(table.open, "open");
  check.check_function(table.parse, "parse");
  if (table.close) check.check_function(table.close, "close");
  FormatRecord& record = out->record;
  record.name = name;
  record.doc = out->texts.emplace_back(check.text(table.help, "its help") + origin_line(plugin));
  record.example = out->texts.emplace_back(check.text(table.example, "its example"));
  record.params = check.params(table.params, out->texts);
  for (const Param& param : record.params) {
    if (param.name == "format" || param.name == "kinds" || param.name == "path" ||
        param.name == "progress" || param.name == "filesystem")
      check.refuse("its parameter \"" + std::string(param.name) + "\" is one of hr.open");
  }
  const PluginFormat* const format = out.get();
  record.recognizes = [format](const std::string& path) { return recognized(*format, path); };
  record.open = [format](const std::string& path, const Arguments& arguments, const Progress&) {
    return open_by_plugin(*format, path, arguments);
  };
  record.plugged = true;
  return out;
}

}  // namespace headrace
