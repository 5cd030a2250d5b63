// SPDX-License-Identifier: Apache-2.0
// For tests/test_plugins.py: libraries whose classes have one name, and else nothing in common.
// Compiled with -DPLUGIN, -DTRANSFORM, -DARGUMENT and -DVALUE.
#include <headrace/plugin.hpp>

namespace hp = headrace::plugin;

class Fill {
 public:
  static constexpr const char* name = TRANSFORM;
  static constexpr const char* help = "Fills images with a number.";
  static constexpr uint32_t flags = HEADRACE_VALUES, kinds = HEADRACE_IMAGE;
  static constexpr uint32_t image_dtypes = HEADRACE_U8;
  static std::vector<hp::Param> params() { return {hp::integer(ARGUMENT, "A factor.", 1)}; }
  explicit Fill(const hp::Arguments& arguments) : factor_(arguments.integer(ARGUMENT)) {}
  void run(hp::Record&, const hp::Field&, hp::Field& out) const {
    const auto to = out.image<uint8_t>();
    for (int64_t c = 0; c < to.channels; ++c)
      for (int64_t y = 0; y < to.height; ++y)
        for (int64_t x = 0; x < to.width; ++x) to(y, x, c) = uint8_t(factor_ * VALUE);
  }

 private:
  const int64_t factor_;
};

HEADRACE_PLUGIN(PLUGIN, "1", Fill)
