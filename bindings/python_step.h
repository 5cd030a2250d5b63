// SPDX-License-Identifier: Apache-2.0
// A PythonFunction whose body is a Python callable.
//
// Called from the engine's Python thread; takes the GIL once for all records of a call.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "headrace/sources/python_function.h"

namespace headrace::python {

class PythonStep final : public PythonFunction {
 public:
  PythonStep(std::string name, std::vector<std::string> inputs, std::vector<Field> returns,
             std::vector<std::string> guessed, PythonGeometry geometry, std::string remedy,
             nb::object run, nb::object chosen)
      : name_(std::move(name)),
        inputs_(std::move(inputs)),
        returns_(std::move(returns)),
        guessed_(std::move(guessed)),
        geometry_(geometry),
        remedy_(std::move(remedy)),
        run_(std::move(run)),
        chosen_(std::move(chosen)) {}
  std::string name() const override { return name_; }
  std::vector<std::string> inputs() const override { return inputs_; }
  std::vector<std::string> chosen(const std::vector<Field>& seen) const override;
  std::vector<Field> returns() const override { return returns_; }
  bool declares_kind(const std::string& field) const override {
    return std::ranges::find(guessed_, field) == guessed_.end();
  }
  std::string remedy() const override { return remedy_; }
  PythonGeometry geometry() const override { return geometry_; }
  void call(std::span<PythonCall* const> calls) override;

 private:
  void take_result(nb::handle result, PythonCall& call) const;
  void fail(PythonCall& call, std::string what) const;
  const std::string name_;
  const std::vector<std::string> inputs_;
  const std::vector<Field> returns_;
  const std::vector<std::string> guessed_;  // the outputs whose kind follows from the name
  const PythonGeometry geometry_;
  const std::string remedy_;
  const OwnedObject run_, chosen_;
};

}  // namespace headrace::python
