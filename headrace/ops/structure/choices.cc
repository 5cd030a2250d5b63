// SPDX-License-Identifier: Apache-2.0
#include "headrace/ops/structure/choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

namespace headrace {
namespace {

const ErrorCode kBadWeights{
    "HR0532", ErrorKind::kConfig, "invalid probabilities",
    "Random choices need one non-negative probability per list, adding up to 1. Weights are "
    "relative to each other, and at least one must be positive."};

}  // namespace

Param lists_param() {
  return {.name = "transforms",
          .type = ParamType::kLists,
          .doc = "The transforms; an entry that is a list counts as one.",
          .required = true,
          .min_count = 1};
}

const std::vector<Branch>& lists_from(const Arguments& arguments) {
  return arguments.branches("transforms");
}

Param weights_param(std::string_view name, std::string_view doc) {
  return {.name = name, .type = ParamType::kFloats, .doc = doc};
}

std::vector<double> weights_from(std::string_view owner, std::string_view name,
                                 const Arguments& arguments) {
  const size_t lists = lists_from(arguments).size();
  if (arguments.is_none(name)) return std::vector<double>(lists, 1.0 / double(lists));
  const std::vector<double>& weights = arguments.numbers(name);
  const std::string whose(name);
  if (weights.size() != lists) {
    raise_bad_weights(owner,
                      whose + " has " + std::to_string(weights.size()) + " values for " +
                          std::to_string(lists) + " entries in the list of transforms",
                      "");
  }
  const auto is_one = [](double weight) { return std::isfinite(weight) && weight >= 0; };
  const auto bad = std::ranges::find_if_not(weights, is_one);
  if (bad != weights.end()) {
    raise_bad_weights(owner,
                      whose + " must not be negative (got " + text_of(ParamValue(*bad)) + ")", "");
  }
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(sum > 0) || !std::isfinite(sum)) {
    raise_bad_weights(owner, whose + " sums to " + text_of(ParamValue(sum)),
                      "at least one must be positive");
  }
  return weights;
}

void raise_bad_weights(std::string_view owner, const std::string& what, const std::string& hint) {
  raise(kBadWeights, "[" + std::string(owner) + "] " + what, hint);
}

}  // namespace headrace
