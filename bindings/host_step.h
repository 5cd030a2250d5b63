// SPDX-License-Identifier: Apache-2.0
// A HostFunction whose body is a Python callable.
//
// Called from the engine's host thread; takes the GIL once for all records of a call.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/sources/host_function.h"

namespace headrace::python {

class PythonStep final : public HostFunction {
 public:
  PythonStep(std::string name, std::vector<std::string> inputs, std::vector<Field> returns,
             HostGeometry geometry, nb::object run)
      : name_(std::move(name)),
        inputs_(std::move(inputs)),
        returns_(std::move(returns)),
        geometry_(geometry),
        run_(std::move(run)) {}
  std::string name() const override { return name_; }
  std::vector<std::string> inputs() const override { return inputs_; }
  std::vector<Field> returns() const override { return returns_; }
  HostGeometry geometry() const override { return geometry_; }
  void call(std::span<HostCall* const> calls) override;

 private:
  void take_result(nb::handle result, HostCall& call) const;
  void fail(HostCall& call, std::string what) const;
  const std::string name_;
  const std::vector<std::string> inputs_;
  const std::vector<Field> returns_;
  const HostGeometry geometry_;
  const OwnedObject run_;
};

}  // namespace headrace::python
