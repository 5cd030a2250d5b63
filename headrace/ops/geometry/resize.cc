// SPDX-License-Identifier: Apache-2.0
// Resize: to a fixed size, or by one edge with the aspect ratio kept.
#include <algorithm>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/ops/picture_op.h"

namespace headrace {
namespace {

// The meaning of size= and max_size=: a fixed size, or the requested edges with 0 for "not given".
struct Target {
  std::optional<Size> fixed;
  int64_t shorter = 0, longer_at_most = 0;
};

// torchvision's arithmetic: true division, then truncation. An edge that would become 0 is 1.
int64_t scaled(int64_t by, int64_t edge, int64_t of) {
  const double exact = static_cast<double>(by * edge) / static_cast<double>(of);
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(exact, 1e9)));
}

struct Extent {
  int64_t height, width;
};

Extent target_size(const Target& target, int64_t height, int64_t width) {
  if (target.fixed) return {target.fixed->height, target.fixed->width};
  const auto [low, high] = std::minmax(height, width);
  int64_t shorter = target.shorter, longer = target.longer_at_most;
  if (shorter == 0) {
    shorter = scaled(longer, low, high);
  } else {
    longer = scaled(shorter, high, low);
    if (target.longer_at_most && longer > target.longer_at_most) {
      shorter = scaled(target.longer_at_most, shorter, longer);
      longer = target.longer_at_most;
    }
  }
  return width <= height ? Extent{longer, shorter} : Extent{shorter, longer};
}

class Resize final : public PictureOp {
 public:
  Resize(Target target, Filter filter) : target_(target), filter_(filter) {}

  Result<void> apply(OpContext& context) const override {
    return follow_by_size(context, [&](Size size) {
      const Extent to = target_size(target_, size.height, size.width);
      return resized_to("Resize", size, to.height, to.width, filter_,
                        "limit the longer edge with max_size=");
    });
  }

 private:
  void plan_picture(FieldState& picture) const override {
    check_filter("Resize", filter_, picture);
    int64_t &height = picture.shape[1], &width = picture.shape[2];
    if (target_.fixed) {
      height = target_.fixed->height;
      width = target_.fixed->width;
    } else if (height >= 0 && width >= 0) {
      const Extent to = target_size(target_, height, width);
      height = to.height;
      width = to.width;
    } else {  // either edge may be the shorter one
      height = width = -1;
      picture.left_open_by = "Resize, which fixes one edge and keeps the aspect ratio";
    }
  }

  const Target target_;
  const Filter filter_;
};

std::unique_ptr<Op> make_resize(const Arguments& arguments) {
  constexpr std::string_view kName = "Resize";
  Target target;
  if (!arguments.is_none("max_size")) target.longer_at_most = arguments.integer("max_size");
  if (arguments.is_none("size")) {
    if (!target.longer_at_most) {
      raise_invalid_argument(
          kName, "needs size, or max_size with size=None",
          "size=256 for the shorter edge, size=(height, width), or max_size=1024");
    }
  } else if (const std::vector<int64_t>& size = arguments.integers("size"); size.size() == 2) {
    if (target.longer_at_most) {
      raise_invalid_argument(
          kName, "max_size requires one size for the shorter edge, not (height, width)");
    }
    target.fixed = size_from(size);
  } else {
    target.shorter = size[0];
    if (target.longer_at_most && target.longer_at_most <= target.shorter) {
      raise_invalid_argument(kName, "max_size must be larger than size, the shorter edge (got " +
                                        std::to_string(target.longer_at_most) + " and " +
                                        std::to_string(target.shorter) + ")");
    }
  }
  return std::make_unique<Resize>(target, filter_from(kName, arguments));
}

const OpRecord kResize{
    .name = "Resize",
    .doc =
        "Resizes a record's images.\n\n"
        "Images and masks, (C, H, W), any dtype; the dtype is unchanged. With size=(h, w) they "
        "become (C, h, w). With one number, the shorter edge gets that size and the other "
        "follows the aspect ratio, truncated to whole pixels, so a crop must follow to make "
        "shapes equal. An image that already has the size is unchanged.",
    .page = {.section = "Geometric transforms", .step = "T.Resize((90, 180))"},
    .params =
        {{.name = "size",
          .type = ParamType::kInts,
          .doc = "Pixels: one number for the shorter edge, (height, width) for both, or None: "
                 "max_size alone decides.",
          .minimum = 1,
          .maximum = 1 << 16,
          .min_count = 1,
          .max_count = 2},
         interpolation_param(),
         {.name = "max_size",
          .type = ParamType::kInt,
          .doc = "With one size: the longer edge is at most this, and the shorter one may become "
                 "less than size. With size=None: the longer edge.",
          .minimum = 1,
          .maximum = 1 << 16},
         antialias_param()},
    .oracle =
        "Pillow's resize, or torch's interpolate(antialias=False) on tensors, bit for bit; "
        "sizes as torchvision v2's",
    .example = {{"size", int64_t{4}}, {"max_size", int64_t{5}}},
    .make = make_resize};
const Register<OpRecord> registered_resize(kResize);

}  // namespace
}  // namespace headrace
