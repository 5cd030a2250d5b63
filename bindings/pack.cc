// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking, and a pack's metadata, as plain dictionaries.
#include "headrace/formats/pack/pack.h"

#include <nanobind/stl/optional.h>

#include <array>
#include <optional>

#include "bindings/bindings.h"

namespace headrace::python {
namespace {

constexpr std::array<const char*, kPackForms> kFormNames = {"none", "fast", "dense", "indexed"};

std::optional<PackLevel> level_named(std::string_view name) {
  if (name == "fast") return PackLevel::kFast;
  if (name == "dense") return PackLevel::kDense;
  return {};
}

nb::dict dict_of(const PackShare& share) {
  nb::dict out;
  out["count"] = share.blobs;
  out["original_bytes"] = share.original_bytes;
  out["stored_bytes"] = share.stored_bytes;
  return out;
}

nb::dict dict_of(const PackSummary& summary) {
  nb::dict out, levels;
  out["records"] = summary.records;
  out["pages"] = summary.pages;
  out["shards"] = summary.shards;
  out["bytes"] = summary.file_bytes;
  out["fingerprint"] = summary.fingerprint;
  out["images"] = dict_of(summary.pictures);
  for (size_t i = 0; i < kFormNames.size(); ++i) levels[kFormNames[i]] = dict_of(summary.forms[i]);
  out["levels"] = levels;
  nb::list reasons, unusable;
  for (const PackReason& reason : summary.reasons) {
    nb::dict entry;
    entry["reason"] = str_from_bytes(reason.reason);
    entry["count"] = reason.blobs;
    entry["bytes"] = reason.bytes;
    entry["unusable"] = reason.unusable;
    reasons.append(entry);
  }
  for (const UnusableRecord& record : summary.unusable) {
    nb::dict entry;
    entry["record"] = record.record;
    entry["key"] = str_from_bytes(record.key);
    entry["field"] = str_from_bytes(record.field);
    entry["reason"] = str_from_bytes(record.reason);
    unusable.append(entry);
  }
  out["stored_unchanged"] = reasons;
  out["unusable"] = unusable;
  out["unusable_count"] = summary.unusable_count;
  out["missing"] = str_from_bytes(summary.missing);
  return out;
}

nb::dict pack_sources(const std::vector<SourceHandle>& handles, const nb::str& name,
                      std::string_view level, int shards, std::optional<int> only, int threads,
                      bool overwrite, nb::handle progress) {
  std::vector<SourcePtr> sources;
  for (const SourceHandle& handle : handles) sources.push_back(handle.source);
  const std::string out = bytes_from_str(name);
  PackOptions options;
  options.level = level_named(level);
  options.shards = shards;
  options.only = only;
  options.threads = threads;
  options.overwrite = overwrite;
  const Progress report_progress = progress_from(progress);
  PackReport report;
  {
    ReleasedGil no_gil;
    report = pack(sources, out, options, report_progress);
  }
  nb::dict answer = dict_of(report.summary);
  answer["resumed_records"] = report.resumed_records;
  answer["seconds"] = report.seconds;
  return answer;
}

nb::dict unpack_files(const nb::str& path_text, const nb::str& folder_text, bool overwrite,
                      bool recover, int threads, nb::handle progress) {
  const std::string path = bytes_from_str(path_text), folder = bytes_from_str(folder_text);
  const UnpackOptions options{.overwrite = overwrite, .recover = recover, .threads = threads};
  const Progress report_progress = progress_from(progress);
  UnpackReport report;
  {
    ReleasedGil no_gil;
    report = unpack(path, folder, options, report_progress);
  }
  nb::dict out;
  out["records"] = report.records;
  out["files"] = report.files;
  out["existing"] = report.present;
  out["bytes"] = report.bytes;
  out["manifest"] = report.manifest;
  nb::list damaged;
  for (const DamagedRecord& record : report.damaged) {
    nb::dict entry;
    entry["record"] = record.record;
    entry["key"] = str_from_bytes(record.key);
    entry["code"] = record.code;
    entry["what"] = str_from_bytes(record.what);
    damaged.append(entry);
  }
  out["damaged"] = damaged;
  out["missing"] = str_from_bytes(report.missing);
  out["seconds"] = report.seconds;
  return out;
}

nb::dict summary_of(const nb::str& name, bool recover) {
  const std::string path = bytes_from_str(name);
  PackSummary summary;
  {
    ReleasedGil no_gil;
    summary = summarize_pack(path, recover);
  }
  return dict_of(summary);
}

void check(const nb::str& name, nb::handle progress) {
  const std::string path = bytes_from_str(name);
  const Progress report_progress = progress_from(progress);
  ReleasedGil no_gil;
  check_pack(path, report_progress);
}

}  // namespace

void bind_pack(nb::module_& module) {
  constexpr const char* kProgress = "collections.abc.Callable[[int, int], object] | None";
  const auto sig = [&](const std::string& before, const std::string& after) {
    return before + "progress: " + kProgress + ") -> " + after;
  };
  module.def(
      "pack", &pack_sources, nb::arg("sources"), nb::arg("out"), nb::arg("level"),
      nb::arg("shards"), nb::arg("only").none(), nb::arg("threads"), nb::arg("overwrite"),
      nb::arg("progress").none(),
      nb::sig(sig("def pack(sources: collections.abc.Sequence[Source], out: str, level: str, "
                  "shards: int, only: int | None, threads: int, overwrite: bool, ",
                  "dict[str, typing.Any]")
                  .c_str()),
      "only: the number of the only shard to write, as a separate file.");
  module.def("unpack", &unpack_files, nb::arg("path"), nb::arg("folder"), nb::arg("overwrite"),
             nb::arg("recover"), nb::arg("threads"), nb::arg("progress").none(),
             nb::sig(sig("def unpack(path: str, folder: str, overwrite: bool, recover: bool, "
                         "threads: int, ",
                         "dict[str, typing.Any]")
                         .c_str()));
  module.def("pack_summary", &summary_of, nb::arg("path"), nb::arg("recover") = false,
             nb::sig("def pack_summary(path: str, recover: bool = False) -> dict[str, typing.Any]"),
             "Counts and sizes of a pack's contents.");
  module.def("check_pack", &check, nb::arg("path"), nb::arg("progress").none(),
             nb::sig(sig("def check_pack(path: str, ", "None").c_str()),
             "Checks the pages of a pack; raises the first problem.");
  module.def(
      "is_pack",
      [](const nb::str& path) {
        const std::string bytes = bytes_from_str(path);
        return waited_for([&] { return is_pack(bytes); });
      },
      nb::arg("path"), nb::sig("def is_pack(path: str) -> bool"));
}

}  // namespace headrace::python
