// SPDX-License-Identifier: Apache-2.0
// Parameter values of types that are declared in a folder below: a dataset, a function.
#pragma once

#include <memory>
#include <string_view>

namespace headrace {

// Passed on as it is: only who declares a parameter for one knows its class.
class ParamObject {
 public:
  virtual ~ParamObject() = default;
  virtual std::string_view noun() const = 0;  // in messages: "a source"
};

// shared: with the user's own handle, whichever is kept longer.
using ParamObjectPtr = std::shared_ptr<const ParamObject>;

}  // namespace headrace
