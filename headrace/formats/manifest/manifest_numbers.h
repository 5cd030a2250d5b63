// SPDX-License-Identifier: Apache-2.0
// Parses numbers in tables, and determines how many bits the fractions of a column need.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "headrace/base/dtype.h"

namespace headrace {

// Parse numbers without leading zeros: 007 is a name.
std::optional<int64_t> integer_in(std::string_view text);
std::optional<double> number_in(std::string_view text);
// Whether the text is an integer of any size, including leading zeros.
bool is_whole(std::string_view text);

// The dtype of a column of fractions: float32, or float64 if float32 would make different numbers
// equal. See Note [Which fractions need 64 bits].
class FractionWidth {
 public:
  void add(std::string_view written, double value);
  DType dtype();

 private:
  bool loses_units_ = false;
  std::vector<double> decimal_;  // values with more digits than float32 can distinguish
};

}  // namespace headrace
