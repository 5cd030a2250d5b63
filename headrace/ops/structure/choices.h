// SPDX-License-Identifier: Apache-2.0
// Shared by operators that choose from lists of transforms.
#pragma once

#include <string_view>
#include <vector>

#include "headrace/ops/op.h"

namespace headrace {

// The parameter `transforms` of these operators, and its lists.
Param lists_param();
const std::vector<Branch>& lists_from(const Arguments& arguments);

// A parameter that is None or has the lists' probabilities; and its values. HR0532 if there are not
// as many as lists, or one is negative or not finite, or all are 0.
Param weights_param(std::string_view name, std::string_view doc);
std::vector<double> weights_from(std::string_view owner, std::string_view name,
                                 const Arguments& arguments);

[[noreturn]] void raise_bad_weights(std::string_view owner, const std::string& what,
                                    const std::string& hint);

}  // namespace headrace
