// SPDX-License-Identifier: Apache-2.0
// Samplers: the engine's, by their factories.

#include <algorithm>

#include "bindings/bindings.h"
#include "headrace/sampling/asked.h"
#include "headrace/sampling/buckets.h"
#include "headrace/sampling/budget.h"
#include "headrace/sampling/sampler.h"

namespace headrace::python {
namespace {

const ErrorCode kSamplerFailed{
    "HR0727", ErrorKind::kConfig, "a sampler in Python failed",
    "An order that a sampler in Python decides is asked for before each epoch. The sampler raised "
    "the exception that is in the message."};

void check_positive(int64_t number, const char* what) {
  if (number < 1) throw nb::value_error((std::string(what) + " must be positive").c_str());
}

// The callable takes (seed, epoch) and returns record indices, below `records`. Any thread may ask
// it.
SamplerHandle asked_in_python(nb::object ask, int64_t records, int64_t positions,
                              std::vector<int64_t> batch_sizes, uint64_t fingerprint,
                              std::string description) {
  // shared: std::function wants to be copied.
  auto callable = std::make_shared<OwnedObject>(std::move(ask));
  for (const int64_t size : batch_sizes) check_positive(size, "a batch size");
  const auto indices = [callable, records](uint64_t seed, uint64_t epoch) {
    stay_away_at_exit();
    EngineGil gil;
    try {
      auto out = nb::cast<std::vector<int64_t>>(callable->get()(seed, epoch));
      for (const int64_t index : out) checked_index(index, records, "record");
      return out;
    } catch (const std::exception& failure) {
      rethrow_keyboard_interrupt(failure);
      if (std::optional<Error> known = error_from_exception(failure)) {
        throw Exception(*std::move(known));
      }
      raise(kSamplerFailed, first_line_of(failure));
    }
  };
  return {asked({.ask = indices,
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

SamplerHandle blocks_of(std::vector<int64_t> ends, int64_t window) {
  check_positive(window, "window");
  if (!std::ranges::is_sorted(ends) || (!ends.empty() && ends.front() < 0)) {
    throw nb::value_error("block_ends must grow from 0 on");
  }
  const int64_t records = ends.empty() ? 0 : ends.back();
  return {shuffled_blocks(std::move(ends), window), records};
}

SamplerHandle given_indices(std::vector<int64_t> indices, bool shuffle) {
  int64_t records = 0;
  for (const int64_t index : indices) {
    records = std::max(records, checked_index(index, INT64_MAX, "record") + 1);
  }
  return {from_indices(std::move(indices), shuffle), records};
}

}  // namespace

void bind_sampling(nb::module_& module) {
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
          "forget", [](const SamplerHandle& self) { self.sampler->forget(); },
          "Orders that Python decides are asked for again, of all loaders with this sampler.")
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
  made.def("from_indices", &given_indices, nb::arg("indices"), nb::arg("shuffle"));
  made.def(
      "weighted",
      [](const std::vector<double>& weights, int64_t draws) {
        return SamplerHandle{weighted(weights, draws), std::ssize(weights)};
      },
      nb::arg("weights"), nb::arg("draws"));
  made.def(
      "buckets",
      [](std::vector<int64_t> lengths, int64_t batch, int64_t pool) {
        check_positive(batch, "batch");
        check_positive(pool, "pool");
        const int64_t records = std::ssize(lengths);
        return SamplerHandle{buckets(std::move(lengths), batch, pool), records};
      },
      nb::arg("lengths"), nb::arg("batch"), nb::arg("pool"));
  made.def(
      "within_budget",
      [](std::vector<int64_t> lengths, int64_t budget, int64_t most_buckets, int64_t parts) {
        check_positive(budget, "budget");
        check_positive(most_buckets, "most_buckets");
        check_positive(parts, "parts");
        const int64_t records = std::ssize(lengths);
        return SamplerHandle{within_budget(std::move(lengths), budget, most_buckets, parts),
                             records};
      },
      nb::arg("lengths"), nb::arg("budget"), nb::arg("most_buckets"), nb::arg("parts"));
  made.def(
      "asked", &asked_in_python, nb::arg("ask"), nb::arg("records"), nb::arg("positions"),
      nb::arg("batch_sizes"), nb::arg("fingerprint"), nb::arg("description"),
      "An order that ask(seed, epoch) gives as a list of record indices, one epoch at a time.");
  made.def(
      "balanced",
      [](const std::vector<int64_t>& labels, int64_t draws) {
        return SamplerHandle{balanced(labels, draws), std::ssize(labels)};
      },
      nb::arg("labels"), nb::arg("draws"));
}

}  // namespace headrace::python
