// SPDX-License-Identifier: Apache-2.0
// For tests/test_plugins_refused.py: a class that throws this and that, as its arguments say.
#include <headrace/plugin.hpp>

namespace hp = headrace::plugin;

struct Picky {
  static constexpr const char* name = "Picky";
  static constexpr const char* help = "Refuses this and that.";
  static constexpr uint32_t flags = HEADRACE_VALUES, kinds = HEADRACE_IMAGE;
  static std::vector<hp::Param> params() {
    return {hp::integers("sizes", "Sizes.", {1, 2}).count(1, 3).range(0, 9),
            hp::text("mode", "What.", "none").choices({"none", "bad", "failed", "dtype"}),
            hp::numbers("scales", "Scales.").count(0, 2), hp::flag("odd", "Odd.")};
  }
  explicit Picky(const hp::Arguments& arguments) : mode(arguments.text("mode")) {
    if (arguments.integers("sizes").back() == 9) throw std::invalid_argument("nine is no size");
    if (arguments.flag("odd")) arguments.number("nothing");
  }
  void run(hp::Record&, const hp::Field& in, hp::Field& out) const {
    if (mode == "bad") throw hp::BadRecord("a bad one");
    if (mode == "failed") throw 5;
    if (mode == "dtype") in.image<float>();
    out.image<uint8_t>()(0, 0, 0) = 1;
  }
  std::string mode;
};

HEADRACE_PLUGIN("classes", "1", Picky)
