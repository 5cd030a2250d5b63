// SPDX-License-Identifier: Apache-2.0
// Base class of parameter values whose types are declared in other folders: a dataset, a function.
#pragma once

#include <memory>
#include <string_view>

namespace headrace {

// Passed through unchanged: only the code that declares a parameter for one knows its class.
class ParamObject {
 public:
  virtual ~ParamObject() = default;
  virtual std::string_view noun() const = 0;  // in messages: "a source"
};

// shared: with the user's handle; either may be kept longer.
using ParamObjectPtr = std::shared_ptr<const ParamObject>;

}  // namespace headrace
