// SPDX-License-Identifier: Apache-2.0
// RandomBBoxCrop: a random window with enough overlap with boxes, by DALI's rules. It is drawn in
// fractions of the picture, before decoding, so that only the window is decoded.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "headrace/base/registry.h"
#include "headrace/fields/boxes.h"
#include "headrace/ops/row_op.h"

namespace headrace {
namespace {

constexpr std::string_view kBBoxCrop = "RandomBBoxCrop";
// DALI retries forever if no window qualifies, unless the number of attempts is limited.
constexpr int64_t kMaxWindows = 10000;

// Left, top, right, bottom as fractions of the picture.
using Shares = std::array<double, 4>;

struct BBoxCropParams {
  std::vector<double> thresholds;
  std::array<double, 2> ratio, scaling;
  int64_t attempts, total_attempts;
  bool all_boxes, allows_none, by_iou;
  std::optional<double> prune;  // minimum fraction of a box; if not given, centers decide
};

struct BBoxWindow {
  Shares window{};
  double overlap = -1;     // applies to all boxes, or to the one with the largest fraction
  std::vector<bool> kept;  // by box
};

double share_area(const Shares& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

double common_area(const Shares& a, const Shares& b) {
  const double wide = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const double high = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  return wide > 0 && high > 0 ? wide * high : 0;
}

class BBoxDraw {
 public:
  BBoxDraw(const BBoxCropParams& params, const std::vector<Shares>& boxes, Draws& draws)
      : params_(params), boxes_(boxes), draws_(draws) {}

  // Nullopt: the picture is unchanged.
  std::optional<BBoxWindow> operator()() const {
    const auto options = std::ssize(params_.thresholds) + params_.allows_none;
    const int64_t most = params_.total_attempts > 0 ? params_.total_attempts : kMaxWindows;
    BBoxWindow best;
    for (int64_t tried = 0; tried < most;) {
      const auto option = static_cast<size_t>(draws_.below(options));
      if (option == params_.thresholds.size()) return {};
      for (int64_t i = 0; i < params_.attempts && tried < most; ++i, ++tried) {
        std::optional<BBoxWindow> drawn = attempt();
        if (!drawn) continue;
        if (drawn->overlap >= params_.thresholds[option]) return drawn;
        if (drawn->overlap > best.overlap) best = std::move(*drawn);
      }
    }
    if (params_.total_attempts == 0 || best.kept.empty()) return {};
    return best;
  }

 private:
  // One window of the given aspect ratio that contains some box.
  std::optional<BBoxWindow> attempt() const {
    double wide = draws_.uniform(params_.scaling[0], params_.scaling[1]);
    double high = draws_.uniform(params_.scaling[0], params_.scaling[1]);
    if (params_.ratio[0] ==
        params_.ratio[1]) {  // makes the longer edge the longer one of those drawn
      const double longer = std::max(wide, high), ratio = params_.ratio[0];
      wide = ratio < 1 ? longer * ratio : longer;
      high = ratio < 1 ? longer : longer / ratio;
    } else if (wide < params_.ratio[0] * high || wide > params_.ratio[1] * high) {
      return {};
    }
    const double left = draws_.uniform(0, 1 - wide), top = draws_.uniform(0, 1 - high);
    BBoxWindow out{{left, top, left + wide, top + high}, params_.all_boxes ? 1.0 : 0.0, {}};
    bool any = false;
    for (const Shares& box : boxes_) {
      const double overlap = overlap_of(out.window, box);
      out.overlap =
          params_.all_boxes ? std::min(out.overlap, overlap) : std::max(out.overlap, overlap);
      out.kept.push_back(keeps(out.window, box));
      any |= out.kept.back();
    }
    return any ? std::optional(std::move(out)) : std::nullopt;
  }

  double overlap_of(const Shares& window, const Shares& box) const {
    const double common = common_area(window, box), area = share_area(box);
    return common / (params_.by_iou ? share_area(window) + area - common : area);
  }

  bool keeps(const Shares& window, const Shares& box) const {
    if (params_.prune) {
      const double common = common_area(window, box);
      return common > 0 && common >= *params_.prune * share_area(box);
    }
    const double x = (box[0] + box[2]) / 2, y = (box[1] + box[3]) / 2;
    return x >= window[0] && x < window[2] && y >= window[1] && y < window[3];
  }

  const BBoxCropParams& params_;
  const std::vector<Shares>& boxes_;
  Draws& draws_;
};

// DALI's slice rounds both ends of a relative window.
std::pair<int, int> range_of_pixels(double begin, double end, int extent) {
  const int from = std::clamp(static_cast<int>(std::lround(begin * extent)), 0, extent - 1);
  const int to = std::clamp(static_cast<int>(std::lround(end * extent)), from + 1, extent);
  return {from, to - from};
}

class RandomBBoxCrop final : public PictureOp {
 public:
  explicit RandomBBoxCrop(BBoxCropParams params) : params_(std::move(params)) {}
  bool changes_rows() const override { return true; }
  bool decides_by(FieldKind kind) const override { return kind == FieldKind::kBoxes; }
  std::string cannot_move(const FieldState& follower) const override {
    return why_not_rotated("RandomBBoxCrop", follower);
  }

  Result<void> apply(OpContext& context) const override {
    const FieldValue* const boxes = deciding_rows(context, FieldKind::kBoxes);
    if (!boxes) return {};  // no rows when called by Plan::passes
    Result<Size> size = common_size(context);
    if (!size) return std::move(size.error());
    const std::vector<Shares> shares = shares_of(*boxes, *size);
    // Without a valid box, no window can qualify.
    if (shares.empty() || !std::ranges::all_of(shares, is_box)) return {};
    const std::optional<BBoxWindow> drawn = BBoxDraw(params_, shares, context.draws)();
    if (!drawn) return {};
    const auto [x, width] = range_of_pixels(drawn->window[0], drawn->window[2], size->width);
    const auto [y, height] = range_of_pixels(drawn->window[1], drawn->window[3], size->height);
    keep_rows(context, drawn->kept);
    return follow(context, Geometry().crop({x, y, width, height}));
  }

 private:
  void plan_picture(FieldState& picture) const override {
    picture.shape[1] = picture.shape[2] = -1;
  }

  static bool is_box(const Shares& box) {
    return std::ranges::all_of(box, [](double at) { return std::isfinite(at); }) &&
           box[2] > box[0] && box[3] > box[1];
  }

  static std::vector<Shares> shares_of(const FieldValue& boxes, Size size) {
    std::vector<Shares> out;
    look_at_coordinates(boxes, [&](auto corners) {
      for (size_t at = 0; at + 4 <= corners.size(); at += 4) {
        convert_box(&corners[at], boxes.box_format, BoxFormat::kXYXY);
        Shares& box = out.emplace_back();
        for (size_t i = 0; i < 4; ++i) {
          box[i] = static_cast<double>(corners[at + i]) / (i % 2 ? size.height : size.width);
        }
      }
    });
    return out;
  }

  const BBoxCropParams params_;
};

std::array<double, 2> bbox_range(const Arguments& arguments, std::string_view name) {
  const std::vector<double>& given = arguments.numbers(name);
  if (given[0] > given[1]) {
    raise_invalid_argument(kBBoxCrop, std::string(name) + " must be (smallest, largest)");
  }
  return {given[0], given[1]};
}

std::unique_ptr<Op> make_random_bbox_crop(const Arguments& arguments) {
  BBoxCropParams params{.thresholds = arguments.numbers("thresholds"),
                        .ratio = bbox_range(arguments, "aspect_ratio"),
                        .scaling = bbox_range(arguments, "scaling"),
                        .attempts = arguments.integer("num_attempts"),
                        .total_attempts = arguments.integer("total_num_attempts"),
                        .all_boxes = arguments.flag("all_boxes_above_threshold"),
                        .allows_none = arguments.flag("allow_no_crop"),
                        .by_iou = arguments.text("threshold_type") == "iou",
                        .prune = {}};
  if (arguments.number("bbox_prune_threshold") >= 0) {
    params.prune = arguments.number("bbox_prune_threshold");
  }
  return std::make_unique<RandomBBoxCrop>(std::move(params));
}

Param bbox_range_param(std::string_view name, std::string_view doc, double smallest,
                       double largest) {
  return {.name = name,
          .type = ParamType::kFloats,
          .doc = doc,
          .fallback = std::vector<double>{1, 1},
          .minimum = smallest,
          .maximum = largest,
          .min_count = 2,
          .max_count = 2};
}

Param bbox_flag_param(std::string_view name, std::string_view doc) {
  return {.name = name, .type = ParamType::kBool, .doc = doc, .fallback = true};
}

Param bbox_count_param(std::string_view name, std::string_view doc, int64_t fallback,
                       int64_t least) {
  return {.name = name,
          .type = ParamType::kInt,
          .doc = doc,
          .fallback = fallback,
          .minimum = static_cast<double>(least),
          .maximum = 1e6};
}

const OpRecord kRandomBBoxCrop{
    .name = kBBoxCrop,
    .doc =
        "Crops a record's images to a random window that overlaps its boxes enough, by DALI's "
        "rules.\n\n"
        "Images and masks, (C, H, W), any dtype, of the same size, with boxes in pixels, (rows, "
        "4). A threshold is drawn, then windows, with sizes relative to the image, until one "
        "overlaps boxes by that much and keeps at least one box. After num_attempts windows "
        "another threshold is drawn. An image without boxes, or with a box of zero area, is "
        "unchanged. Boxes outside of the window are dropped, with the rows that belong to them. "
        "The window is drawn before decoding, and only the window is decoded.",
    .page = {.section = "Detection transforms",
             .step = "T.RandomBBoxCrop([0.1, 0.3], aspect_ratio=(0.5, 2), scaling=(0.3, 1), "
                     "num_attempts=20, all_boxes_above_threshold=False, allow_no_crop=False)"},
    .params =
        {{.name = "thresholds",
          .type = ParamType::kFloats,
          .doc = "Minimum overlaps; one of them is drawn.",
          .fallback = std::vector<double>{0.0},
          .minimum = 0,
          .maximum = 1,
          .min_count = 1},
         bbox_range_param(
             "aspect_ratio",
             "Smallest and largest width / height of the window, relative to the image's: 1 is the "
             "image's own ratio. If both are equal, the ratio is exact.",
             1e-6, 1e6),
         bbox_range_param("scaling", "Smallest and largest fraction of the edges.", 1e-6, 1),
         bbox_count_param("num_attempts", "Number of windows to try per threshold.", 1, 1),
         bbox_count_param(
             "total_num_attempts",
             "Maximum number of windows to try; after that, the one with the largest overlap is "
             "used. 0: up to 10,000 (DALI continues forever), then the image is unchanged.",
             0, 0),
         bbox_flag_param("all_boxes_above_threshold",
                         "Whether every box must have that overlap, instead of only one."),
         bbox_flag_param("allow_no_crop",
                         "Whether \"no crop\" is among the thresholds to draw from."),
         {.name = "bbox_prune_threshold",
          .type = ParamType::kFloat,
          .doc = "Minimum fraction of a box's area in the window for it to "
                 "stay. -1: its center must be in the window.",
          .fallback = -1.0,
          .minimum = -1,
          .maximum = 1},
         {.name = "threshold_type",
          .type = ParamType::kString,
          .doc = "Overlap as \"iou\", intersection over union of box and window, or "
                 "\"overlap\", "
                 "the fraction of the box that is in the window.",
          .fallback = std::string("iou"),
          .choices = {"iou", "overlap"}}},
    .oracle =
        "DALI's random_bbox_crop, in distribution; the window's edges are whole pixels, rounded "
        "as DALI's slice does, and boxes are relative to them",
    .example = {{"thresholds", std::vector<double>{0.1, 0.3, 0.5}},
                {"aspect_ratio", std::vector<double>{0.5, 2.0}},
                {"scaling", std::vector<double>{0.3, 1.0}},
                {"num_attempts", int64_t{20}},
                {"total_num_attempts", int64_t{500}},
                {"bbox_prune_threshold", 0.2}},
    .random = true,
    .make = make_random_bbox_crop};
const Register<OpRecord> registered_random_bbox_crop(kRandomBBoxCrop);

}  // namespace
}  // namespace headrace
