// SPDX-License-Identifier: Apache-2.0
// A transform written in Python (a Python callable in the list of transforms).
//
// The executor calls it from its one Python thread, with all records that have reached it, so that
// the GIL is taken once for many records.
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

// A value passed to or from Python. Images and masks are passed as (C, H, W). Inputs are read-only:
// they may be the source's memory, or shared with another branch.
struct PythonValue {
  // Set for a value that is not decoded yet; then `view` has dtype and shape, but no data.
  std::optional<DeferredPicture> deferred = {};
  TensorView view;  // text and bytes: uint8, shape {length}, with is_text / is_bytes
  Buffer owned;     // memory of `view`, if the value came from Python
  bool is_text = false, is_bytes = false;
  FieldKind kind = FieldKind::kTensor;  // for inputs
};

struct PythonCall {
  std::vector<PythonValue> inputs;  // in the order of PythonFunction::chosen()
  std::span<const Field> fields;    // their descriptions; owned by the plan
  // Filled in by Python: the fields that it returns; the others stay unchanged. Without names, the
  // outputs are the input fields in order.
  std::vector<std::string> output_names;
  std::vector<PythonValue> outputs;
  Draws draws;
  Result<void> result;  // a Python exception becomes a data error of this record
};

// The effect of a function on the geometry of an image, as far as it is known.
enum class PythonGeometry : uint8_t {
  kUnknown,  // unknown: if the size of the image changes, it counts as moved
  kMoves,    // moves image content, only in its inputs
  kAlone,    // the user has declared that other fields remain valid
};

class PythonFunction : public ParamObject {
 public:
  std::string_view noun() const override { return "a function"; }
  virtual std::string name() const = 0;
  // The input fields, by the names of the arguments (except "rng").
  virtual std::vector<std::string> inputs() const = 0;
  // The same, if they depend on the available fields. Throws if the fields are unsuitable.
  virtual std::vector<std::string> chosen(const std::vector<Field>& /*seen*/) const {
    return inputs();
  }
  // Fields that it returns with another kind, dtype or shape (-1 where records differ), and new
  // fields. All its other fields must be returned with the same kind, dtype and shape; otherwise
  // the record fails with HR0601.
  virtual std::vector<Field> returns() const { return {}; }
  // Whether the kind in returns() was declared. A kind that was only inferred from the name is
  // replaced by the field's previous kind, if values of the new form allow it.
  virtual bool declares_kind(const std::string& /*field*/) const { return true; }
  // The hint for a result that is not as declared; empty: the default hint, how to declare results.
  virtual std::string remedy() const { return {}; }
  virtual PythonGeometry geometry() const { return PythonGeometry::kUnknown; }
  virtual void call(std::span<PythonCall* const> calls) = 0;
};

}  // namespace headrace
