// SPDX-License-Identifier: Apache-2.0
// Rows of batches that one process makes for another: numbers, bytes and errors. Python transfers
// them.
#include "headrace/executor/lent_rows.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/loader_handle.h"
#include "headrace/base/registry.h"

namespace headrace::python {
namespace {

const ErrorCode kUnknownError{
    "HR0714", ErrorKind::kData, "error from a different version",
    "A process that makes rows for this one sent an error code unknown here. Both must run the "
    "same version of Headrace."};

nb::dict dict_from_failure(const RowFailure& failure) {
  const Error& error = failure.error;
  nb::dict out;
  out["row"] = failure.row;
  out["record"] = failure.record;
  out["action"] = failure.action;
  out["fatal"] = failure.fatal;
  out["code"] = error.code ? error.code->id : "";
  out["what"] = str_from_bytes(error.what);
  out["note"] = str_from_bytes(error.note);
  out["hint"] = str_from_bytes(error.hint);
  out["file"] = str_from_bytes(error.where.file);
  out["member"] = str_from_bytes(error.where.member);
  out["offset"] = error.where.offset;
  return out;
}

RowFailure failure_from_dict(const nb::dict& given) {
  const auto text = [&](const char* name) { return bytes_from_str(given[name]); };
  RowFailure out{.row = nb::cast<int>(given["row"]),
                 .record = nb::cast<int64_t>(given["record"]),
                 .error = {.code = Registry<ErrorCode>::find(text("code")),
                           .what = text("what"),
                           .where = Where{.file = text("file"),
                                          .member = text("member"),
                                          .offset = nb::cast<int64_t>(given["offset"])},
                           .note = text("note"),
                           .hint = text("hint")},
                 .action = text("action"),
                 .fatal = nb::cast<bool>(given["fatal"])};
  if (!out.error.code) {
    out.error.what = text("code") + ": " + out.error.what;
    out.error.code = &kUnknownError;
  }
  return out;
}

using Stage = std::pair<const char*, double StageSeconds::*>;
constexpr Stage kStages[] = {
    {"read", &StageSeconds::read},         {"decode", &StageSeconds::entropy},
    {"prepare", &StageSeconds::coded},     {"transform", &StageSeconds::transform},
    {"resample", &StageSeconds::resample}, {"store", &StageSeconds::store},
    {"python", &StageSeconds::python}};

// into: memory for each output, of row_bytes() per row.
nb::dict make_rows(const LoaderHandle& self, int64_t epoch, int64_t batch, int first, int count,
                   const nb::list& into) {
  std::deque<ExportedBuffer> memory;
  for (nb::handle each : into) memory.emplace_back(each, PyBUF_WRITABLE);
  const auto lent = [&](size_t output, size_t bytes) {
    if (output >= memory.size() || memory[output].bytes().size() < bytes) {
      throw std::invalid_argument("too little memory for rows");
    }
    return std::shared_ptr<void>(memory[output].bytes().data(), [](void*) {});
  };
  const RowsResult made = self.with([&](Loader& loader) {
    return loader.make_rows({.epoch = epoch, .batch = batch, .first = first, .count = count}, lent);
  });
  nb::list failures, dropped;
  for (const RowFailure& failure : made.failures) failures.append(dict_from_failure(failure));
  for (const int row : made.dropped) dropped.append(row);
  nb::dict out, stages;
  for (const auto& [name, member] : kStages) stages[name] = made.stages.*member;
  out["failures"] = failures;
  out["dropped"] = dropped;
  out["warnings"] = made.warnings;
  out["repaired"] = made.remarks.repaired;
  out["exif_ignored"] = made.remarks.exif_ignored;
  out["seconds"] = made.seconds;
  out["stages"] = stages;
  return out;
}

// (number, epoch, batch, first row, rows)
using Lent = std::tuple<int64_t, int64_t, int64_t, int, int>;

std::optional<Lent> rows_ahead(const LoaderHandle& self, int most, double patience) {
  const std::optional<LentRows> rows =
      self.with([&](Loader& loader) { return loader.rows_ahead(most, patience); });
  if (!rows) return std::nullopt;
  return Lent{rows->number, rows->epoch, rows->batch, rows->first, rows->count};
}

bool rows_arrived(const LoaderHandle& self, int64_t number, const nb::list& values,
                  const nb::dict& report) {
  std::deque<ExportedBuffer> memory;
  RowBytes bytes;
  for (nb::handle each : values) bytes.push_back(memory.emplace_back(each, PyBUF_SIMPLE).bytes());
  RowsResult made;
  for (nb::handle each : nb::cast<nb::list>(report["failures"])) {
    made.failures.push_back(failure_from_dict(nb::cast<nb::dict>(each)));
  }
  for (nb::handle each : nb::cast<nb::list>(report["dropped"])) {
    made.dropped.push_back(nb::cast<int>(each));
  }
  made.warnings = nb::cast<int64_t>(report["warnings"]);
  made.remarks = {.repaired = nb::cast<int64_t>(report["repaired"]),
                  .exif_ignored = nb::cast<int64_t>(report["exif_ignored"])};
  return self.with(
      [&](Loader& loader) { return loader.rows_arrived(number, std::move(made), bytes); });
}

// By output.
std::vector<size_t> row_bytes(const LoaderHandle& self) {
  return self.with([](Loader& loader) {
    std::vector<size_t> out;
    for (const Output& output : loader.plan().outputs()) out.push_back(output.bytes_per_record);
    return out;
  });
}

}  // namespace

void bind_lent_rows(nb::module_& module) {
  module.def(
      "make_rows", &make_rows, nb::arg("loader"), nb::arg("epoch"), nb::arg("batch"),
      nb::arg("first"), nb::arg("count"), nb::arg("into"),
      nb::sig("def make_rows(loader: Loader, epoch: int, batch: int, first: int, count: int, "
              "into: list[typing.Any]) -> dict[str, typing.Any]"),
      "Makes rows of a batch on this thread, into memory of row_bytes() per row for each output. "
      "Returns failures, dropped rows and counters.");
  module.def(
      "rows_ahead", &rows_ahead, nb::arg("loader"), nb::arg("most"), nb::arg("patience"),
      "Lends rows: (number, epoch, batch, first, count). This loader does not make them until "
      "they are returned or `patience` seconds have passed. None: no rows to lend now.");
  module.def("rows_arrived", &rows_arrived, nb::arg("loader"), nb::arg("number"), nb::arg("values"),
             nb::arg("report"),
             nb::sig("def rows_arrived(loader: Loader, number: int, values: list[typing.Any], "
                     "report: dict[str, typing.Any]) -> bool"),
             "Writes rows that were lent; False if they are no longer awaited.");
  module.def(
      "rows_returned",
      [](const LoaderHandle& self, int64_t number) {
        self.with([&](Loader& loader) { loader.rows_returned(number); });
      },
      nb::arg("loader"), nb::arg("number"),
      "Takes lent rows back: the loader's own threads make them.");
  module.def(
      "rows_are_out",
      [](const LoaderHandle& self, int64_t number) {
        return self.with([&](Loader& loader) { return loader.rows_are_out(number); });
      },
      nb::arg("loader"), nb::arg("number"));
  module.def("row_bytes", &row_bytes, nb::arg("loader"), "Bytes of one row of each output.");
}

}  // namespace headrace::python
