// SPDX-License-Identifier: Apache-2.0
// A step that is written in Python (a Python callable in the list of transforms).
//
// The executor calls it from its one Python thread, with all records that have reached it, so that
// Python takes its global lock once for many records.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/base/buffer.h"
#include "headrace/base/error.h"
#include "headrace/base/param_object.h"
#include "headrace/base/random.h"
#include "headrace/base/tensor.h"
#include "headrace/image/deferred_picture.h"
#include "headrace/sources/schema.h"

namespace headrace {

// A value passed to or from Python. Pictures are passed as (C, H, W). Inputs are read-only: they
// may be the source's memory, or be shared with another branch.
struct PythonValue {
  // A result that is not decoded yet; `view` has its dtype and shape, and no data.
  std::optional<DeferredPicture> deferred = {};
  TensorView view;  // text and bytes: uint8, shape {length}, with is_text / is_bytes
  Buffer owned;     // backs `view` where the value came from Python
  bool is_text = false, is_bytes = false;
  FieldKind kind = FieldKind::kTensor;  // of an input
};

struct PythonCall {
  std::vector<PythonValue> inputs;  // in the order of PythonFunction::chosen()
  std::span<const Field> fields;    // their states; the plan's
  // Filled in by Python: fields that it gives back; the others stay as they are. Without names
  // the outputs are the inputs' fields in their order.
  std::vector<std::string> output_names;
  std::vector<PythonValue> outputs;
  Draws draws;
  Result<void> result;  // Python's exception becomes a data error of this record
};

// The effect of a function on the geometry of a picture, as far as it is known.
enum class PythonGeometry : uint8_t {
  kUnknown,  // nothing: a change of its picture's size is taken as a move
  kMoves,    // it moves pictures, and only those that it takes
  kAlone,    // the user has declared that other fields stay unchanged, whatever it does
};

class PythonFunction : public ParamObject {
 public:
  std::string_view noun() const override { return "a function"; }
  virtual std::string name() const = 0;
  // Fields that it takes, by its argument names ("rng" excepted).
  virtual std::vector<std::string> inputs() const = 0;
  // The same if they depend on the available fields. Throws if it cannot take them.
  virtual std::vector<std::string> chosen(const std::vector<Field>& /*seen*/) const {
    return inputs();
  }
  // Fields that it returns changed: with another kind, dtype or shape (-1 where
  // records differ), and new fields. All its other fields are taken to come back as they went in;
  // a record for which that is not so fails with HR0601.
  virtual std::vector<Field> returns() const { return {}; }
  // Whether the kind in returns() was declared. A kind that only follows from the name yields to
  // the field's previous kind, if values of the new form can have it.
  virtual bool says_kind(const std::string& /*field*/) const { return true; }
  // A hint if a result is not as declared; empty: how results are declared.
  virtual std::string remedy() const { return {}; }
  virtual PythonGeometry geometry() const { return PythonGeometry::kUnknown; }
  virtual void call(std::span<PythonCall* const> calls) = 0;
};

}  // namespace headrace
