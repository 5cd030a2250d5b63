// SPDX-License-Identifier: Apache-2.0
// Samplers: registered ones by name, and those that are internal to the package.

#include <nanobind/stl/pair.h>

#include <algorithm>

#include "bindings/bindings.h"
#include "headrace/sampling/batch_layout.h"
#include "headrace/sampling/external_order.h"
#include "headrace/sampling/sampler.h"
#include "headrace/sampling/sampler_record.h"
#include "headrace/sampling/streams.h"

namespace headrace::python {
namespace {

const ErrorCode kSamplerFailed{
    "HR0727", ErrorKind::kConfig, "Python sampler failed",
    "The order of a Python sampler is requested before each epoch. The sampler raised the "
    "exception in the message."};

void check_positive(int64_t number, const char* what) {
  if (number < 1) throw nb::value_error((std::string(what) + " must be positive").c_str());
}

// Numbers that Python provides record by record: directly as an array of that dtype, without an
// object for each.
template <class T>
std::vector<T> numbers_from(nb::handle given, DType dtype) {
  if (!PyObject_CheckBuffer(given.ptr())) return nb::cast<std::vector<T>>(given);
  const TensorView view = borrowed_view(given);
  if (view.dtype != dtype || view.shape.size() != 1) {
    throw nb::type_error(
        ("expected an array of " + std::string(name_of(dtype)) + " with one axis").c_str());
  }
  const auto* values = reinterpret_cast<const T*>(view.data);
  return {values, values + view.shape[0]};
}

std::vector<int64_t> integers_from(nb::handle given) {
  return numbers_from<int64_t>(given, DType::kInt64);
}

std::vector<double> doubles_from(nb::handle given) {
  return numbers_from<double>(given, DType::kFloat64);
}

// The callable takes (seed, epoch) and returns a Sampler, or record indices below `records`.
// Callable from any thread.
SamplerHandle order_from_python(nb::object ask, int64_t records, int64_t positions,
                                std::vector<int64_t> batch_sizes, uint64_t fingerprint,
                                std::string description) {
  // shared: std::function must be copyable.
  auto callable = std::make_shared<OwnedObject>(std::move(ask));
  for (const int64_t size : batch_sizes) check_positive(size, "a batch size");
  const auto order_of = [callable, records](uint64_t seed, uint64_t epoch) -> SamplerPtr {
    // A thread of the engine has none; see Note [Why daemon threads stay away].
    if (PyGILState_GetThisThreadState() != nullptr) sleep_if_exiting();
    EngineGil gil;
    try {
      const nb::object given = callable->get()(seed, epoch);
      if (const SamplerHandle * order; nb::try_cast(given, order) && order) {
        if (order->records > records) throw nb::index_error("an order of more records");
        return order->sampler;
      }
      std::vector<int64_t> out = integers_from(given);
      for (const int64_t index : out) checked_index(index, records, "record");
      return from_indices(std::move(out), false);
    } catch (const std::exception& failure) {
      rethrow_keyboard_interrupt(failure);
      if (std::optional<Error> known = error_from_exception(failure)) {
        throw Exception(*std::move(known));
      }
      raise(kSamplerFailed, first_line_of(failure));
    }
  };
  return {external_order({.ask = order_of,
                          .positions = positions,
                          .batch_sizes = std::move(batch_sizes),
                          .fingerprint = fingerprint,
                          .description = std::move(description)}),
          records};
}

int64_t checked_records(int64_t records) {
  if (records < 0) throw nb::value_error("the number of records must not be negative");
  return records;
}

int64_t checked_ends(const std::vector<int64_t>& ends) {
  if (!std::ranges::is_sorted(ends) || (!ends.empty() && ends.front() < 0)) {
    throw nb::value_error("block_ends must increase, starting from 0");
  }
  return ends.empty() ? 0 : ends.back();
}

SamplerHandle blocks_of(std::vector<int64_t> ends, int64_t window) {
  check_positive(window, "window");
  const int64_t records = checked_ends(ends);
  return {shuffled_blocks(std::move(ends), window), records};
}

SamplerHandle streams_of(const std::vector<int64_t>& ends, int64_t count, int64_t window,
                         bool sticky, int64_t global_batch) {
  for (const int64_t number : {count, window, global_batch}) {
    check_positive(number, "count, window and global_batch");
    if (number > INT32_MAX) throw nb::value_error("count, window or global_batch is too large");
  }
  const int64_t records = checked_ends(ends);
  return {
      shuffled_streams(
          ends, {.count = count, .window = window, .sticky = sticky, .global_batch = global_batch}),
      records};
}

constexpr std::string_view kPerRecordNames[] = {"weights", "labels", "lengths", "durations",
                                                "indices", "order",  "nothing"};

nb::dict samplers() {
  nb::dict out;
  for (const SamplerRecord* sampler : Registry<SamplerRecord>::all()) {
    nb::dict entry;
    entry["name"] = sampler->name;
    entry["doc"] = sampler->doc;
    entry["example"] = sampler->example;
    entry["per_record"] = kPerRecordNames[static_cast<int>(sampler->per_record)];
    entry["shuffles"] = sampler->shuffles;
    nb::list params;
    if (sampler->per_record != PerRecord::kNothing) params.append(describe(sampler->given));
    for (const Param& param : sampler->params) params.append(describe(param));
    entry["params"] = params;
    if (sampler->origin) entry["plugin"] = describe(*sampler->origin);
    out[nb::cast(sampler->name)] = entry;
  }
  return out;
}

const SamplerRecord& record_of(const std::string& name) {
  const SamplerRecord* record = Registry<SamplerRecord>::find(name);
  if (!record) throw nb::key_error(name.c_str());
  return *record;
}

Arguments checked_arguments(const SamplerRecord& record, const NamedValues& given) {
  const Arguments arguments(record.name, record.params, params_from_dict(given));
  if (record.check) record.check(arguments);
  return arguments;
}

SamplerHandle made_of_blocks(const SamplerRecord& record, const Arguments& arguments,
                             SamplerData data, const SourceHandle* source) {
  if (source) data.block_ends = source->source->block_ends();
  for (const int64_t number : {data.global_batch, data.machines}) {
    check_positive(number, "a number of records or machines");
  }
  const int64_t records = data.block_ends.empty() ? 0 : data.block_ends.back();
  return {record.make(std::move(data), arguments), records};
}

SamplerHandle made_sampler(const std::string& name, const NamedValues& given, nb::object values,
                           int64_t parts, int64_t records, bool shuffle, const SourceHandle* source,
                           int64_t global_batch, int64_t machines, int64_t streams,
                           const std::vector<std::pair<nb::object, int64_t>>& further) {
  const SamplerRecord& record = record_of(name);
  const Arguments arguments = checked_arguments(record, given);
  check_positive(parts, "parts");
  SamplerData data{.records = records, .parts = parts, .shuffle = shuffle};
  if (record.per_record == PerRecord::kNothing) {
    data.global_batch = global_batch;
    data.machines = machines;
    data.streams = streams;
    return made_of_blocks(record, arguments, std::move(data), source);
  }
  if (record.per_record == PerRecord::kOrder) {
    const auto order = nb::cast<SamplerHandle>(values);
    data.order = order.sampler;
    return {record.make(std::move(data), arguments), order.records};
  }
  int64_t least = 0;
  if (record.per_record == PerRecord::kWeights) {
    data.weights = doubles_from(values);
    least = std::ssize(data.weights);
  } else {
    data.integers = integers_from(values);
    least = std::ssize(data.integers);
  }
  for (const auto& [lengths, their_parts] : further) {
    check_positive(their_parts, "parts");
    data.further.push_back({integers_from(lengths), their_parts});
    if (std::ssize(data.further.back().lengths) != least) {
      throw nb::value_error("lengths of another number of records");
    }
  }
  if (record.per_record == PerRecord::kIndices) {
    least = 0;
    for (const int64_t index : data.integers) {
      least = std::max(least, checked_index(index, INT64_MAX, "record") + 1);
    }
  }
  return {record.make(std::move(data), arguments), least};
}

}  // namespace

void bind_sampling(nb::module_& module) {
  module.attr("ENDLESS") = kEndless;  // positions of an epoch without an end
  nb::class_<SamplerHandle>(module, "Sampler", "(seed, epoch, position) -> record index.")
      .def("__len__", [](const SamplerHandle& self) { return self.sampler->size(); })
      .def(
          "index",
          [](const SamplerHandle& self, uint64_t seed, uint64_t epoch, int64_t position) {
            return self.sampler->index(seed, epoch,
                                       checked_index(position, self.sampler->size(), "position"));
          },
          nb::arg("seed"), nb::arg("epoch"), nb::arg("position"))
      .def(
          "indices",
          [](const SamplerHandle& self, uint64_t seed, uint64_t epoch, int64_t begin,
             int64_t count) {
            const int64_t size = self.sampler->size();
            if (begin < 0 || count < 0 || begin > size || count > size - begin) {
              throw nb::index_error("positions outside the epoch");
            }
            Array out = make_array(DType::kInt64, {count});
            self.sampler->indices(seed, epoch, begin,
                                  {reinterpret_cast<int64_t*>(out.view.data), size_t(count)});
            return out;
          },
          nb::arg("seed"), nb::arg("epoch"), nb::arg("begin"), nb::arg("count"),
          "Record indices at `count` positions of an epoch, starting at `begin`, as int64.")
      .def_prop_ro(
          "records", [](const SamplerHandle& self) { return self.records; },
          "Minimum number of records that a source must have.")
      .def_prop_ro(
          "batch_sizes",
          [](const SamplerHandle& self) {
            const auto sizes = self.sampler->batch_sizes();
            return std::vector<int64_t>(sizes.begin(), sizes.end());
          },
          "Records of each batch, where the order decides that; else empty.")
      .def_prop_ro("fingerprint",
                   [](const SamplerHandle& self) { return self.sampler->fingerprint(); })
      .def(
          "forget", [](const SamplerHandle& self) { self.sampler->forget(); },
          "Orders that Python decides are requested again, for all loaders with this sampler.")
      .def_prop_ro("description",
                   [](const SamplerHandle& self) { return self.sampler->description(); });
  nb::module_ made = module;
  made.def(
      "sequential",
      [](int64_t records) { return SamplerHandle{sequential(checked_records(records)), records}; },
      nb::arg("records"));
  made.def(
      "shuffled",
      [](int64_t records) { return SamplerHandle{shuffled(checked_records(records)), records}; },
      nb::arg("records"));
  made.def("shuffled_blocks", &blocks_of, nb::arg("block_ends"), nb::arg("window"));
  made.def("shuffled_streams", &streams_of, nb::arg("block_ends"), nb::arg("count"),
           nb::arg("window"), nb::arg("sticky"), nb::arg("global_batch"));
  made.def("streams_for", &streams_for, nb::arg("machines"),
           "The number of streams for this number of machines.");
  made.def("samplers", &samplers, nb::sig("def samplers() -> dict[str, dict[str, typing.Any]]"),
           "All samplers by name, with their parameters; the first one is given record by record.");
  made.def(
      "check_sampler",
      [](const std::string& name, const NamedValues& given) {
        checked_arguments(record_of(name), given);
      },
      nb::arg("name"), nb::arg("arguments"));
  made.def("make_sampler", &made_sampler, nb::arg("name"), nb::arg("arguments"), nb::arg("values"),
           nb::arg("parts"), nb::arg("records"), nb::arg("shuffle"),
           nb::arg("source").none() = nb::none(), nb::arg("global_batch") = 1,
           nb::arg("machines") = 1, nb::arg("streams") = 0,
           nb::arg("further") = std::vector<std::pair<nb::object, int64_t>>(),
           "values: one integer per record, or floats for weights, or a Sampler for orders of "
           "orders. further: additional lengths, each with its parts. The arguments in between are "
           "for orders of blocks.");
  made.def(
      "asked", &order_from_python, nb::arg("ask"), nb::arg("records"), nb::arg("positions"),
      nb::arg("batch_sizes"), nb::arg("fingerprint"), nb::arg("description"),
      "An order that ask(seed, epoch) gives, one epoch at a time: record indices or a Sampler.");
  made.def(
      "shuffled_by",
      [](const SourceHandle& source) {
        return SamplerHandle{shuffled_by(source.source), source.source->size()};
      },
      nb::arg("source"), "Each record once, in the order of the loader's shuffle=True.");
}

}  // namespace headrace::python
