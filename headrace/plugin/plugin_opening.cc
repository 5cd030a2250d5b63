// SPDX-License-Identifier: Apache-2.0
#include "headrace/plugin/plugin_opening.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "headrace/plugin/plugin_call.h"
#include "headrace/plugin/plugin_view.h"
#include "headrace/sources/field_names.h"
#include "headrace/storage/folder_entries.h"

namespace headrace {
namespace {

constexpr size_t kMaxColumns = 1000;
constexpr uint32_t kFirstColumn = 88;  // bytes in version 1
static_assert(sizeof(headrace_column) >= kFirstColumn);

int32_t say(headrace_error* error, int32_t code, const std::string& what) {
  return headrace_fail(error, code, "%s", what.c_str());
}

// Reports a read error to the plug-in, and keeps it, so that open() can throw it unchanged if the
// plug-in fails.
int32_t fail(headrace_opened* opened, headrace_error* error, const Error& failed) {
  opened->failed = failed;
  return say(error, HEADRACE_FAILED, failed.message());
}

int32_t broke(headrace_opened* opened, headrace_error* error, const std::string& what) {
  opened->wrong = what;
  return say(error, HEADRACE_FAILED, what);
}

int32_t get_status(headrace_opened* opened, const char* path, headrace_path_status* status,
                   headrace_error* error) {
  if (!path) return broke(opened, error, "get_status() was called without a path");
  const Result<PathStatus> found = storage_of(path).look_at(path);
  if (!found) return fail(opened, error, found.error());
  status->kind = found->kind == PathKind::kFile     ? HEADRACE_FILE
                 : found->kind == PathKind::kFolder ? HEADRACE_FOLDER
                                                    : 0;
  status->size = found->identity.size;
  status->version = found->identity.inode;
  status->modified_ns = found->identity.modified_ns;
  return HEADRACE_OK;
}

int32_t find_entries(headrace_opened* opened, const char* path, std::vector<FolderEntry>* entries,
                     headrace_error* error) {
  if (!path) return broke(opened, error, "list() was called without a path");
  *entries = entries_in(path);
  std::ranges::sort(*entries, {}, &FolderEntry::name);
  return HEADRACE_OK;
}

// A function as the plug-in calls it: (opened, ..., error).
template <auto kFunction>
constexpr auto from_plugin = [](headrace_opened* opened, auto... arguments) -> int32_t {
  return call_from_plugin(opened->thrown, int32_t{HEADRACE_FAILED}, [&] {
    try {
      return kFunction(opened, arguments...);
    } catch (const Exception& failed) {
      headrace_error* const error = std::get<sizeof...(arguments) - 1>(std::tie(arguments...));
      return fail(opened, error, failed.error());
    }
  });
};

int32_t list(headrace_opened* opened, const char* path,
             int32_t (*each)(void* context, const char* name, int32_t kind), void* context,
             headrace_error* error) {
  std::vector<FolderEntry> entries;
  const int32_t found = from_plugin<find_entries>(opened, path, &entries, error);
  if (found != HEADRACE_OK) return found;
  for (const FolderEntry& entry : entries) {  // exceptions of `each` are the plug-in's own
    if (!each(context, entry.name.c_str(), entry.is_folder ? HEADRACE_FOLDER : HEADRACE_FILE))
      break;
  }
  return HEADRACE_OK;
}

int32_t read(headrace_opened* opened, const char* path, uint64_t offset, void* out, uint64_t bytes,
             headrace_error* error) {
  if (!path) return broke(opened, error, "read() was called without a path");
  if (!opened->file || opened->file->path() != path) {
    Result<File> file = File::open(path);
    if (!file) return fail(opened, error, file.error());
    opened->file = std::move(*file);
  }
  Result<void> done = opened->file->read(offset, {static_cast<uint8_t*>(out), size_t(bytes)});
  return done ? HEADRACE_OK : fail(opened, error, done.error());
}

std::optional<FieldKind> kind_of_column(int32_t kind) {
  switch (kind) {
    case HEADRACE_IMAGE:
      return FieldKind::kImage;
    case HEADRACE_MASK:
      return FieldKind::kMask;
    case HEADRACE_AUDIO:
      return FieldKind::kAudio;
    case HEADRACE_LABEL:
      return FieldKind::kLabel;
    case HEADRACE_TENSOR:
      return FieldKind::kTensor;
    case HEADRACE_TEXT:
      return FieldKind::kText;
    case HEADRACE_BYTES:
      return FieldKind::kBytes;
    default:
      return {};
  }
}

int32_t add_column(headrace_opened* opened, const headrace_column* given, headrace_error* error) {
  if (given->struct_size < kFirstColumn)
    return broke(opened, error, "a column has " + std::to_string(given->struct_size) + " bytes");
  const std::string name(given->name ? given->name : "",
                         given->name ? strnlen(given->name, 256) : 0);
  if (!is_field_name(name) || opened->schema.size() == kMaxColumns)
    return broke(opened, error, "a column is called \"" + name + "\"");
  if (field_number(opened->schema, name) < opened->schema.size())
    return broke(opened, error, "two columns are called \"" + name + "\"");
  const std::optional<FieldKind> kind = kind_of_column(given->kind);
  if (!kind)
    return broke(opened, error,
                 "the column \"" + name + "\" has the kind " + std::to_string(given->kind));
  Field field{.name = name, .kind = *kind};
  if (given->kind == HEADRACE_IMAGE || given->kind == HEADRACE_MASK ||
      given->kind == HEADRACE_AUDIO) {
    field.kind = FieldKind::kBytes;
    record_of(*kind).take(field);
  }
  if (*kind == FieldKind::kLabel) field.dtype = DType::kInt64;
  if (*kind == FieldKind::kTensor) {
    const std::optional<DType> dtype = dtype_from(given->dtype);
    if (!dtype || given->ndim < 0 || given->ndim > HEADRACE_MAX_AXES)
      return broke(opened, error, "the column \"" + name + "\" has an invalid dtype or shape");
    field.dtype = *dtype;
    for (int i = 0; i < given->ndim; ++i) {
      if (given->shape[i] < -1 || given->shape[i] > INT32_MAX)
        return broke(opened, error, "the column \"" + name + "\" has an invalid shape");
      field.shape.push_back(given->shape[i]);
    }
  }
  opened->schema.push_back(std::move(field));
  return HEADRACE_OK;
}

int32_t add_file(headrace_opened* opened, const char* path, headrace_error* error) {
  if (!path || !*path) return broke(opened, error, "a file has no path");
  if (!opened->files.empty()) opened->index.records.end_file();
  opened->files.emplace_back(path);
  return HEADRACE_OK;
}

int32_t add_record(headrace_opened* opened, uint64_t offset, uint64_t bytes,
                   headrace_error* error) {
  if (opened->files.empty()) return broke(opened, error, "a record was added before a file");
  if (bytes > uint64_t{INT64_MAX} || offset > uint64_t{INT64_MAX} - bytes)
    return broke(opened, error, "a record is at byte " + std::to_string(offset));
  opened->index.records.add(offset, bytes);
  return HEADRACE_OK;
}

}  // namespace

headrace_opening opening_of(headrace_opened& opened) {
  return {.struct_size = sizeof(headrace_opening),
          .reserved = 0,
          .opened = &opened,
          .get_status = from_plugin<get_status>,
          .list = list,
          .read = from_plugin<read>,
          .add_column = from_plugin<add_column>,
          .add_file = from_plugin<add_file>,
          .add_record = from_plugin<add_record>};
}

uint8_t* allocate_cell(headrace_opened* opened, uint32_t cell, uint64_t bytes) {
  return call_from_plugin(opened->thrown, static_cast<uint8_t*>(nullptr), [&]() -> uint8_t* {
    if (cell >= opened->buffers.size()) {
      opened->wrong = "it allocates memory for the cell " + std::to_string(cell);
      return nullptr;
    }
    try {
      if (bytes > opened->max_bytes) throw std::bad_alloc();
      opened->buffers[cell].resize(bytes);
    } catch (const std::bad_alloc&) {
      opened->refused = {cell, bytes};
      return nullptr;
    }
    return opened->buffers[cell].data();
  });
}

}  // namespace headrace
