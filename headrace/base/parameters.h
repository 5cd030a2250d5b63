// SPDX-License-Identifier: Apache-2.0
// Parameters of operators and formats, declared as data: the Python signature, the docstring, the
// reference, the validation messages and the contract tests all come from these tables.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headrace/base/dtype.h"
#include "headrace/base/error.h"
#include "headrace/base/param_object.h"

namespace headrace {

struct Spec;

// A named branch of transforms (Fork), or a nested list of a RandomApply or RandomChoice (name
// empty).
struct Branch {
  std::string name;
  std::vector<Spec> transforms;
};

using ParamVariant = std::variant<std::monostate,  // None
                                  bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                                  std::vector<double>, std::vector<Branch>,
                                  std::vector<std::string>, ParamObjectPtr>;

// The value of a parameter. Its members are defined in parameters.cc: most files include tables of
// parameters, and compiling a variant's copy functions in each would take a third of the build
// time.
class ParamValue : public ParamVariant {
 public:
  ParamValue();                // None
  ParamValue(std::monostate);  // None
  ParamValue(bool value);
  ParamValue(int64_t value);
  ParamValue(double value);
  ParamValue(std::string value);
  ParamValue(DType value);
  ParamValue(std::vector<int64_t> value);
  ParamValue(std::vector<double> value);
  ParamValue(std::vector<Branch> value);
  ParamValue(std::vector<std::string> value);
  ParamValue(ParamObjectPtr value);
  ParamValue(const ParamValue& other);
  ParamValue(ParamValue&& other) noexcept;
  ParamValue& operator=(const ParamValue& other);
  ParamValue& operator=(ParamValue&& other) noexcept;
  ~ParamValue();
};

std::string text_of(const ParamValue& value);  // as Python writes it

// A transform as the user wrote it: a name and arguments, not yet checked.
struct Spec {
  std::string name;
  std::map<std::string, ParamValue> arguments = {};
  std::vector<std::string> fields = {};  // `fields=`; empty: every field that it understands
  // shared: with the Python object, which outlives every plan.
  std::shared_ptr<ParamObject> function = {};  // instead of a name
};

enum class ParamType {
  kBool,
  kInt,
  kFloat,
  kString,
  kDType,
  kInts,        // one int, or a list of them
  kFloats,      // one number, or a list of them; or one of the choices, if there are any
  kTransforms,  // a list of transforms
  kBranches,    // keyword arguments, each a list of transforms
  kStrings,     // a list of strings; or one of the choices, if there are any
  kLists,       // a list whose entries are transforms, or lists of them
  kSource,      // a dataset, all of whose records the operator may take
};

// What the value of a format's parameter affects. By default a parameter affects the records.
enum class Affects : uint8_t {
  kRecords,      // affects records: open_source() adds it to the fingerprint
  kFingerprint,  // the same, and the format's own fingerprint changes with it
  kReading,      // how the same records are read
  kPlace,        // where the files are: a path, which open_source() makes absolute
};

struct Param {
  std::string_view name;
  ParamType type;
  std::string_view doc;
  ParamValue fallback = {};  // the default; may be None
  bool required = false;
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  std::vector<std::string_view> choices = {};  // for kString, kStrings, kFloats
  int min_count = 0, max_count = 1 << 20;      // for lists
  bool or_none = false;                        // None is accepted, although it is not the default
  Affects decides = Affects::kRecords;         // of formats
};

// Arguments after validation: every declared name is present, with its declared type (or None if
// that is the default or accepted); a single number given for a list has become a list with one
// number.
class Arguments {
 public:
  // Throws Exception HR0101..HR0104: unknown name (with "did you mean"), missing, type, range.
  Arguments(std::string_view owner, const std::vector<Param>& params,
            const std::map<std::string, ParamValue>& given);

  bool has(std::string_view name) const { return values_.contains(name); }  // is declared
  bool is_none(std::string_view name) const;
  bool is_text(std::string_view name) const;
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  DType dtype(std::string_view name) const;
  const std::vector<int64_t>& integers(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;
  const std::vector<Branch>& branches(std::string_view name) const;
  const std::vector<std::string>& texts(std::string_view name) const;
  const ParamObjectPtr& object(std::string_view name) const;  // null if None
  // The value, of any declared type.
  const ParamValue& value(std::string_view name) const;

 private:
  std::map<std::string, ParamValue, std::less<>> values_;
};

// The nearest of the candidates by edit distance, or empty when none is near.
std::string_view nearest_name(std::string_view name,
                              const std::vector<std::string_view>& candidates);

}  // namespace headrace
