// SPDX-License-Identifier: Apache-2.0
// Sources made of sources: some records of one, or several together.
#include "headrace/sources/combined/combined.h"

#include <nanobind/ndarray.h>

#include "bindings/bindings.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/row_groups.h"
#include "headrace/sources/subset.h"

namespace headrace::python {
namespace {

using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::vector<SourcePtr> sources_of(const std::vector<SourceHandle>& handles) {
  std::vector<SourcePtr> sources;
  for (const SourceHandle& handle : handles) sources.push_back(handle.source);
  return sources;
}

std::vector<SourceHandle> split_source(const SourceHandle& source,
                                       const std::vector<double>& fractions, uint64_t seed,
                                       const std::string& stratify_by) {
  std::vector<SourceHandle> parts;
  for (SourcePtr& part : split(source.source, fractions, seed, stratify_by)) {
    parts.push_back({std::move(part)});
  }
  return parts;
}

nb::list kfold_source(const SourceHandle& source, int folds, uint64_t seed,
                      const std::string& stratify_by) {
  nb::list out;
  for (Fold& fold : kfold(source.source, folds, seed, stratify_by)) {
    out.append(nb::make_tuple(SourceHandle{std::move(fold.train)},
                              SourceHandle{std::move(fold.validation)}));
  }
  return out;
}

SourceHandle join_sources(const SourceHandle& left, const SourceHandle& right, std::string on,
                          const nb::dict& rename, std::vector<std::string> kinds) {
  JoinOptions options{.on = std::move(on), .rename = {}, .kinds = std::move(kinds)};
  for (const auto& [from, to] : rename) {
    options.rename[nb::cast<std::string>(from)] = nb::cast<std::string>(to);
  }
  ReleasedGil no_gil;
  return {join(left.source, right.source, options)};
}

}  // namespace

void bind_combined(nb::module_& module) {
  module.def(
      "subset",
      [](const SourceHandle& source, const Indices& indices) {
        return SourceHandle{
            subset(source.source, {indices.data(), indices.data() + indices.size()})};
      },
      nb::arg("source"), nb::arg("indices"),
      nb::sig("def subset(source: Source, indices: object) -> Source"),
      "indices: an array of int64.");
  module.def("split", &split_source, nb::arg("source"), nb::arg("fractions"), nb::arg("seed"),
             nb::arg("stratify_by"));
  module.def("kfold", &kfold_source, nb::arg("source"), nb::arg("folds"), nb::arg("seed"),
             nb::arg("stratify_by"),
             nb::sig("def kfold(source: Source, folds: int, seed: int, stratify_by: str) -> "
                     "list[tuple[Source, Source]]"));
  module.def(
      "concat",
      [](const std::vector<SourceHandle>& sources) {
        return SourceHandle{concat(sources_of(sources))};
      },
      nb::arg("sources"));
  module.def(
      "mix",
      [](const std::vector<SourceHandle>& sources, const std::vector<double>& weights, int64_t size,
         uint64_t seed) { return SourceHandle{mix(sources_of(sources), weights, size, seed)}; },
      nb::arg("sources"), nb::arg("weights"), nb::arg("size"), nb::arg("seed"));
  module.def("join", &join_sources, nb::arg("left"), nb::arg("right"), nb::arg("on"),
             nb::arg("rename"), nb::arg("kinds"),
             nb::sig("def join(left: Source, right: Source, on: str, rename: dict[str, str], "
                     "kinds: collections.abc.Sequence[str]) -> Source"));
  module.def(
      "with_kinds",
      [](const SourceHandle& source, const std::vector<std::string>& kinds) {
        return SourceHandle{with_kinds(source.source, kinds_from(kinds))};
      },
      nb::arg("source"), nb::arg("kinds"), "kinds: [\"seg=mask\"].");
  module.def(
      "with_row_group",
      [](const SourceHandle& source, const std::vector<std::string>& fields) {
        return SourceHandle{with_row_group(source.source, fields)};
      },
      nb::arg("source"), nb::arg("fields"));
  module.def(
      "with_evident_kinds",
      [](const SourceHandle& source, const std::vector<std::string>& kinds) {
        return SourceHandle{with_evident_kinds(source.source, kinds_from(kinds))};
      },
      nb::arg("source"), nb::arg("kinds"),
      "Also those that follow from names. kinds: [\"seg=mask\"].");
  module.def(
      "evident_kind",
      [](std::string name, DType dtype, Shape shape) {
        const Field field{std::move(name), FieldKind::kTensor, dtype, std::move(shape), false};
        return name_of(evident_kind(field, {}));
      },
      nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
      "What a tensor of this name and shape is taken for.");
}

}  // namespace headrace::python
