// SPDX-License-Identifier: Apache-2.0
// The loader. Every call that may wait releases the GIL, and handles signals while it waits.
#include "headrace/loader.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>

#include "bindings/bindings.h"
#include "bindings/counters.h"
#include "bindings/loader_handle.h"
#include "bindings/python_step.h"
#include "headrace/executor/threads/thread_pool.h"
#include "headrace/fields/kind.h"
#include "headrace/loader/counters.h"
#include "headrace/loader/options.h"

namespace headrace::python {
namespace {

const ErrorCode kClosed{
    "HR0792", ErrorKind::kConfig, "used after close()",
    "close() permanently releases what a loader holds. Batches that were kept stay valid; to "
    "continue, make another loader and start it from this one's state_dict()."};

}  // namespace

void raise_closed(const char* what) {
  raise(kClosed, what + std::string(" is closed"), "make another one");
}

void LoaderHandle::close(const std::function<void()>& check_interrupt) {
  std::shared_ptr<Loader> closing = std::move(held);
  if (!closing) return;
  const double patience = check_interrupt && exit_waits() ? 0 : closing_patience();
  ReleasedGil no_gil;
  // A call in progress keeps it alive, but its threads must stop working.
  if (!forked_from_running_engine())
    finish_within(patience, [closing] { closing->stop_workers(); }, check_interrupt);
  closing.reset();
}

nb::object values_of(BatchField& field) {
  if (!field.is_list) {
    auto device = field.is_on_device ? std::static_pointer_cast<DeviceLease>(field.lease) : nullptr;
    return nb::cast(Array{std::move(field.view), std::move(field.lease), std::move(device)});
  }
  nb::list out;
  for (const std::string& value : field.strings) {
    if (field.is_text) {
      out.append(str_from_bytes(value));
    } else {
      out.append(nb::bytes(value.data(), value.size()));
    }
  }
  for (TensorView& item : field.items) out.append(Array{std::move(item), field.lease});
  return out;
}

nb::dict dict_from_state(const LoaderState& state) {
  nb::dict out;
  out["seed"] = state.seed;
  out["epoch"] = state.epoch;
  out["batch"] = state.batch;
  out["global_batch"] = state.global_batch;
  out["records"] = state.records;
  out["bad_records"] = state.bad_records;
  out["fingerprint"] = state.fingerprint;
  if (state.streams > 0) out["streams"] = state.streams;
  return out;
}

namespace {

// At interpreter exit. False: something hangs, and the process must exit without waiting for it.
bool shutdown(bool patient) {
  const double patience = patient ? 0 : closing_patience();
  ReleasedGil no_gil;
  const auto stop = [] {
    shutdown_threads();
    close_python_files();
    close_key_provider();
  };
  return finish_within(patience, stop, check_signals);
}

// (epoch, index, values by field)
nb::tuple tuple_from_batch(Batch batch) {
  nb::list values;
  for (BatchField& field : batch.fields) values.append(values_of(field));
  return nb::make_tuple(batch.epoch, batch.index, values);
}

// None at the end of the epoch, and when `ended()`, called every 50 ms, says that the batch is no
// longer needed.
nb::object next(LoaderHandle& self, const nb::callable& ended) {
  std::optional<Batch> batch =
      while_not_ended(ended, [&](const std::function<void()>& check_interrupt) {
        return self.with([&](Loader& loader) { return loader.next(check_interrupt); });
      });
  if (!batch) return nb::none();
  try {
    return tuple_from_batch(std::move(*batch));
  } catch (...) {
    self.with([](Loader& loader) { loader.take_back(); });
    throw;
  }
}

nb::tuple batch_at(LoaderHandle& self, int64_t epoch, int64_t index) {
  return tuple_from_batch(self.with([&](Loader& loader) { return loader.batch(epoch, index); }));
}

nb::dict stats(const LoaderHandle& self) {
  return dict_from_counters(loader_counters(),
                            self.with([](Loader& loader) { return loader.stats(); }));
}

// One line of JSON per entry, as in the quarantine file.
std::vector<std::string> quarantine(const LoaderHandle& self) {
  return self.with([](Loader& loader) {
    std::vector<std::string> lines;
    for (const BadRecord& bad : loader.quarantine()) lines.push_back(json_of(bad));
    return lines;
  });
}

LoaderState state_from_dict(const nb::dict& state) {
  auto number = [&](const char* name) { return nb::cast<int64_t>(state[name]); };
  return {.seed = nb::cast<uint64_t>(state["seed"]),
          .epoch = number("epoch"),
          .batch = number("batch"),
          .global_batch = number("global_batch"),
          .records = number("records"),
          .bad_records = number("bad_records"),
          .fingerprint = nb::cast<uint64_t>(state["fingerprint"]),
          .streams = state.contains("streams") ? number("streams") : 0};
}

nb::list outputs_of(const LoaderHandle& self) {
  nb::list out;
  const std::vector<Output> outputs =
      self.with([](Loader& loader) { return loader.plan().outputs(); });
  for (const Output& output : outputs) {
    nb::dict entry;
    entry["name"] = output.name;
    entry["kind"] = name_of(output.state.kind);
    entry["box_format"] = name_of(output.state.box_format);
    entry["is_picture"] = is_picture(output.state.kind);
    entry["dtype"] = name_of(output.state.dtype);
    entry["sample_rate"] = output.state.sample_rate;
    entry["shape"] = nb::tuple(nb::cast(output.state.shape));
    entry["list"] = output.as_list && !output.is_assembled();
    entry["ragged"] = !output.is_assembled()          ? ""
                      : output.ragged == Ragged::kPad ? "pad"
                                                      : "packed";
    entry["companion"] = output.companion < 0 ? "" : outputs[size_t(output.companion)].name;
    entry["is_companion"] = output.origin == OutputOrigin::kLengths ||
                            output.origin == OutputOrigin::kMask ||
                            output.origin == OutputOrigin::kOffsets;
    out.append(entry);
  }
  return out;
}

// Fills options from the table (headrace/loader/options.h); file names are bytes.
LoaderOptions options_from_dict(const nb::dict& given) {
  std::map<std::string, ParamValue> named;
  for (auto [name, value] : given) {
    const bool is_text = PyUnicode_Check(value.ptr());
    named[nb::cast<std::string>(name)] =
        is_text ? ParamValue(bytes_from_str(value)) : param_from_object(value);
  }
  return loader_options_from(named);
}

nb::list describe_options() {
  nb::list out;
  for (const LoaderOption& option : loader_options()) {
    nb::dict entry = describe(option.param);
    entry["group"] = option.group;
    out.append(entry);
  }
  return out;
}

// Copied here because nanobind's converters are noexcept: without memory they end the process.
Pipeline pipeline_of(const nb::list& transforms, const nb::dict& by_field,
                     const nb::list& dropped) {
  const auto specs = [](nb::handle list) {
    std::vector<Spec> out;
    for (nb::handle each : list) out.push_back(nb::cast<const Spec&>(each));
    return out;
  };
  Pipeline out;
  out.transforms = specs(transforms);
  for (auto [field, list] : by_field) out.by_field.emplace(nb::str(field).c_str(), specs(list));
  for (nb::handle each : dropped) out.dropped.emplace_back(nb::str(each).c_str());
  return out;
}

using Specs = nb::typed<nb::list, Spec>;

void make_loader(LoaderHandle* self, const SourceHandle& source, const Specs& transforms,
                 const nb::typed<nb::dict, nb::str, Specs>& by_field,
                 const nb::typed<nb::list, nb::str>& dropped, const NamedValues& given,
                 const SamplerHandle* sampler, const DeviceHandle* device, nb::object warn) {
  LoaderOptions options = options_from_dict(given);
  if (sampler && sampler->records > 0) {
    checked_index(sampler->records - 1, source.source->size(), "record");
  }
  if (sampler) options.sampler = sampler->sampler;
  if (device) options.device = device->device;
  // shared: std::function must be copyable.
  auto callable = std::make_shared<OwnedObject>(std::move(warn));
  options.warn = [callable](const std::string& message) {
    nb::gil_scoped_acquire gil;
    callable->get()(message);
  };
  const Pipeline pipeline = pipeline_of(transforms, by_field, dropped);
  std::shared_ptr<Loader> loader;
  {
    ReleasedGil no_gil;
    loader = std::make_shared<Loader>(source.source, pipeline, options);
  }
  new (self) LoaderHandle{{std::move(loader), "this loader"}};
}

}  // namespace

void bind_loader(nb::module_& module) {
  module.def(
      "shutdown", &shutdown, nb::arg("patient"),
      "Stops all threads of the engine before the interpreter shuts down. False: a thread hangs, "
      "and the process must exit without waiting for it.");
  module.def("throw_if_forked", &throw_if_forked);
  module.def(
      "begin_exit", &begin_exit, nb::arg("patient"),
      "Called when the interpreter is about to shut down on this thread: other threads that wait "
      "keep waiting.");
  module.def("on_engine_thread", &on_engine_thread,
             "Whether the engine called this Python code, on one of its own threads.");
  module.def("closing_patience", &closing_patience,
             "Seconds that close() currently waits for work that may never end.");
  module.def(
      "loader_options", &describe_options,
      nb::sig("def loader_options() -> list[dict[str, typing.Any]]"),
      "The loader's options as declared, in the order of the reference; those without a group are "
      "internal.");
  module.def(
      "loader_counters", [] { return describe_counters(loader_counters()); },
      nb::sig("def loader_counters() -> list[dict[str, typing.Any]]"),
      "What Loader.stats() counts, in its order.");
  nb::class_<LoaderHandle>(module, "Loader", "The engine's side of headrace.Loader.")
      .def("__init__", &make_loader, nb::arg("source"), nb::arg("transforms"), nb::arg("by_field"),
           nb::arg("dropped"), nb::arg("options"), nb::arg("sampler").none(),
           nb::arg("device").none(), nb::arg("warn"))
      .def("next", &next, nb::arg("ended"),
           nb::sig("def next(self, ended: typing.Callable[[], bool]) -> tuple[int, int, "
                   "list[typing.Any]] | None"),
           "None at the end of the epoch, and when ended() returns True.")
      .def(
          "take_back",
          [](LoaderHandle& self) { self.with([](Loader& loader) { loader.take_back(); }); },
          "Undoes the last next(), whose batch was not delivered.")
      .def("batch", &batch_at, nb::arg("epoch"), nb::arg("index"),
           nb::sig("def batch(self, epoch: int, index: int) -> tuple[int, int, list[typing.Any]]"))
      .def(
          "indices",
          [](const LoaderHandle& self, int64_t epoch, int64_t index) {
            return self.with([&](Loader& loader) { return loader.indices(epoch, index); });
          },
          nb::arg("epoch"), nb::arg("index"))
      .def(
          "weight",
          [](const LoaderHandle& self, int64_t batch) {
            return self.with([&](Loader& loader) { return loader.weight(batch); });
          },
          nb::arg("batch"))
      .def("batches_per_epoch",
           [](const LoaderHandle& self) {
             return self.with([](Loader& loader) { return loader.batches_per_epoch(); });
           })
      .def("restart",
           [](LoaderHandle& self) {
             self.with([](Loader& loader) { loader.restart(check_signals); });
           })
      .def(
          "set_epoch",
          [](LoaderHandle& self, int64_t epoch) {
            self.with([&](Loader& loader) { loader.set_epoch(epoch, check_signals); });
          },
          nb::arg("epoch"))
      .def("epoch",
           [](const LoaderHandle& self) {
             return self.with([](Loader& loader) { return loader.epoch(); });
           })
      .def(
          "state",
          [](const LoaderHandle& self) {
            return dict_from_state(self.with([](Loader& loader) { return loader.state(); }));
          },
          nb::sig("def state(self) -> dict[str, int]"))
      .def(
          "load_state",
          [](LoaderHandle& self, const nb::dict& given) {
            const LoaderState state = state_from_dict(given);
            self.with([&](Loader& loader) { loader.load_state(state, check_signals); });
          },
          nb::arg("state"), nb::sig("def load_state(self, state: dict[str, int]) -> None"))
      .def(
          "load_resident",
          [](LoaderHandle& self) {
            return self.with([](Loader& loader) { return loader.load_resident(check_signals); });
          },
          "Loads the resident records now. True if batches are on the device.")
      .def_prop_ro(
          "leaves_unfinished",
          [](const LoaderHandle& self) {
            return self.with([](Loader& loader) { return loader.leaves_unfinished(); });
          },
          "Whether batches are finished on the device that they are copied to.")
      .def("plan_text",
           [](const LoaderHandle& self) {
             return self.with([](Loader& loader) { return loader.plan().text(); });
           })
      .def("outputs", &outputs_of, nb::sig("def outputs(self) -> list[dict[str, typing.Any]]"))
      .def("stats", &stats, nb::sig("def stats(self) -> dict[str, typing.Any]"))
      .def("quarantine", &quarantine, "A line of JSON for each bad record.")
      .def(
          "resolved",
          [](const LoaderHandle& self, const std::string& option) {
            return self.with([&](Loader& loader) { return loader.resolved(option); });
          },
          nb::arg("option"))
      .def("close", [](LoaderHandle& self) { self.close(check_signals); });
}

}  // namespace headrace::python
