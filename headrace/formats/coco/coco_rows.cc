// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "headrace/formats/coco/coco.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

[[noreturn]] void contradiction(const std::string& path, std::string what, uint64_t offset,
                                std::string hint) {
  throw Exception(Error{.code = &kCocoMismatch,
                        .what = std::move(what),
                        .where = Where{.file = path, .offset = static_cast<int64_t>(offset)},
                        .hint = std::move(hint)});
}

// The index of this id, in items sorted by `id`.
template <class Item>
int64_t place_of(const std::vector<Item>& items, int64_t id) {
  const auto at = std::lower_bound(items.begin(), items.end(), id,
                                   [](const Item& item, int64_t i) { return item.id < i; });
  return at != items.end() && at->id == id ? at - items.begin() : -1;
}

class CocoJoin {
 public:
  CocoJoin(CocoRows rows, const CocoOptions& options, const std::string& path)
      : in_(std::move(rows)), options_(options), path_(path) {}

  CocoAnnotations join() {
    sort_images();
    sort_categories();
    find_images();
    count_rows();
    place_rows();
    if (options_.skip_empty) drop_empty();
    return std::move(out_);
  }

 private:
  void sort_images() {
    if (in_.images.size() > std::numeric_limits<int32_t>::max()) {
      contradiction(path_, "more than 2,147,483,647 images", 0, {});
    }
    std::vector<int32_t> order(in_.images.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return in_.images[a].id < in_.images[b].id; });
    out_.images.reserve(order.size());
    out_.file_names.reserve(in_.file_names.size(), in_.file_names.bytes().size());
    for (const int32_t i : order) {
      if (!out_.images.empty() && out_.images.back().id == in_.images[i].id) {
        contradiction(path_, "the id " + std::to_string(in_.images[i].id) + " refers to two images",
                      in_.image_offsets[i], "give each image a unique id");
      }
      out_.images.push_back(in_.images[i]);
      out_.file_names.add(in_.file_names[i]);
    }
    in_.images = {};
    in_.image_offsets = {};
    in_.file_names = {};
  }

  void sort_categories() {
    out_.categories = std::move(in_.categories);
    std::stable_sort(out_.categories.begin(), out_.categories.end(),
                     [](const auto& a, const auto& b) { return a.id < b.id; });
    for (size_t i = 1; i < out_.categories.size(); ++i) {
      if (out_.categories[i].id != out_.categories[i - 1].id) continue;
      contradiction(path_,
                    "the id " + std::to_string(out_.categories[i].id) +
                        " refers to two categories: '" + out_.categories[i - 1].name + "' and '" +
                        out_.categories[i].name + "'",
                    0, "give each category a unique id");
    }
    for (const CocoRow& row : in_.rows) {
      out_.has_boxes |= row.has_box;
      if (row.has_box && !in_.has_categories && !options_.keep_category_ids) {
        contradiction(path_, "annotations have boxes, but the file has no list \"categories\"",
                      row.offset, "pass category_ids=\"keep\" to use the ids as labels");
      }
    }
  }

  // Looks up each row's picture; -1 for skipped rows.
  void find_images() {
    places_.resize(in_.rows.size());
    const CocoRow* first = nullptr;
    for (size_t r = 0; r < in_.rows.size(); ++r) {
      const CocoRow& row = in_.rows[r];
      places_[r] = static_cast<int32_t>(place_of(out_.images, row.image_id));
      if (places_[r] >= 0) continue;
      if (out_.orphans++ == 0) first = &row;
    }
    if (out_.orphans == 0 || options_.drop_orphans) return;
    contradiction(path_,
                  count_text(out_.orphans, "annotation") +
                      " of images that are not listed; the first has image_id " +
                      std::to_string(first->image_id),
                  first->offset, "orphans=\"drop\" skips them");
  }

  bool is_row(const CocoRow& row) const { return !row.caption.bytes || row.has_box; }

  // Bad rows are never skipped: their errors must be reported.
  bool is_left_out(const CocoRow& row, bool bad) const {
    if (options_.skip_crowd && row.crowd) return true;
    if (bad || !row.has_box) return false;
    if (row.box[2] < options_.min_size || row.box[3] < options_.min_size) return true;
    return row.area < options_.min_area;
  }

  std::string problem_of(const CocoRow& row, const CocoImage& image) {
    if (!out_.has_boxes) return {};
    if (!row.has_box) return "an annotation without a box";
    if (!row.has_category) return "an annotation without a category_id";
    if (in_.has_categories && place_of(out_.categories, row.category_id) < 0) {
      return "category_id " + std::to_string(row.category_id) + ", which is not listed";
    }
    const float* box = row.box;
    const float right = box[0] + box[2], bottom = box[1] + box[3];
    if ((image.width > 0 && box[0] > static_cast<float>(image.width)) ||
        (image.height > 0 && box[1] > static_cast<float>(image.height)) || right < 0 ||
        bottom < 0) {
      return "a box that lies outside the image";
    }
    constexpr float kRounding = .5F;
    out_.over_edge += box[0] < -kRounding || box[1] < -kRounding ||
                      (image.width > 0 && right > static_cast<float>(image.width) + kRounding) ||
                      (image.height > 0 && bottom > static_cast<float>(image.height) + kRounding);
    return {};
  }

  void complain(int64_t place, std::string what, uint64_t offset) {
    out_.problems.push_back({place, std::move(what), offset});
  }

  // Validates the rows, and counts those of each picture.
  void count_rows() {
    out_.row_begins.assign(out_.images.size() + 1, 0);
    out_.caption_begins.assign(out_.images.size() + 1, 0);
    if (in_.rows.size() > std::numeric_limits<uint32_t>::max()) {
      contradiction(path_, "more than 4,294,967,295 annotations", 0, {});
    }
    auto problem = in_.problems.begin();
    for (size_t r = 0; r < in_.rows.size(); ++r) {
      CocoRow& row = in_.rows[r];
      const bool bad = problem != in_.problems.end() && problem->row == r;
      std::string what = bad ? std::move((problem++)->what) : std::string();
      if (places_[r] < 0) continue;
      if (row.caption.bytes > 0) ++out_.caption_begins[places_[r] + 1];
      if (!is_row(row)) continue;
      if (!row.has_area) row.area = row.box[2] * row.box[3];
      if (what.empty()) what = problem_of(row, out_.images[places_[r]]);
      if (is_left_out(row, !what.empty())) {
        left_out_.push_back(r);
        continue;
      }
      if (!what.empty()) complain(places_[r], std::move(what), row.offset);
      ++out_.row_begins[places_[r] + 1];
    }
    // The first problem of each picture.
    std::stable_sort(out_.problems.begin(), out_.problems.end(),
                     [](const auto& a, const auto& b) { return a.image < b.image; });
    const auto same = [](const auto& a, const auto& b) { return a.image == b.image; };
    out_.problems.erase(std::unique(out_.problems.begin(), out_.problems.end(), same),
                        out_.problems.end());
    std::partial_sum(out_.row_begins.begin(), out_.row_begins.end(), out_.row_begins.begin());
    std::partial_sum(out_.caption_begins.begin(), out_.caption_begins.end(),
                     out_.caption_begins.begin());
  }

  void place_rows() {
    const size_t rows = out_.row_begins.back();
    out_.boxes.resize(rows * 4);
    out_.labels.resize(rows);
    out_.areas.resize(rows);
    out_.crowd.resize(rows);
    const auto any = [&](JsonRange CocoRow::* range) {
      return std::any_of(in_.rows.begin(), in_.rows.end(),
                         [&](const CocoRow& row) { return (row.*range).bytes > 0; });
    };
    if (any(&CocoRow::segmentation)) out_.segmentations.resize(rows);
    if (any(&CocoRow::keypoints)) out_.keypoints.resize(rows);
    out_.captions.resize(out_.caption_begins.back());
    std::vector<uint32_t> next_row(out_.row_begins), next_caption(out_.caption_begins);
    auto left_out = left_out_.begin();
    for (size_t r = 0; r < in_.rows.size(); ++r) {
      const CocoRow& row = in_.rows[r];
      const bool left = left_out != left_out_.end() && *left_out == r;
      if (left) ++left_out;
      if (places_[r] < 0) continue;
      if (row.caption.bytes > 0) out_.captions[next_caption[places_[r]]++] = row.caption;
      if (!left && is_row(row)) place_row(row, next_row[places_[r]]++);
    }
    in_ = {};
  }

  void place_row(const CocoRow& row, uint32_t at) {
    std::copy_n(row.box, 4, &out_.boxes[size_t{at} * 4]);
    out_.areas[at] = row.area;
    out_.crowd[at] = row.crowd;
    out_.labels[at] = options_.keep_category_ids
                          ? row.category_id
                          : std::max<int64_t>(place_of(out_.categories, row.category_id), 0);
    if (!out_.segmentations.empty()) out_.segmentations[at] = row.segmentation;
    if (!out_.keypoints.empty()) out_.keypoints[at] = row.keypoints;
  }

  // Pictures without rows are removed, with their captions. If no row has a box, captions count as
  // rows.
  void drop_empty() {
    CocoAnnotations& all = out_;
    NameList names;
    std::vector<CocoImage> images;
    std::vector<uint32_t> rows{0}, captions{0};
    std::vector<JsonRange> caption_ranges;
    std::vector<CocoProblem> problems;
    auto problem = all.problems.begin();
    for (size_t i = 0; i < all.images.size(); ++i) {
      const bool has_problem = problem != all.problems.end() && problem->image == int64_t(i);
      if (all.row_begins[i] == all.row_begins[i + 1] &&
          (all.has_boxes || all.caption_begins[i] == all.caption_begins[i + 1])) {
        continue;
      }
      if (has_problem) {
        problems.push_back(std::move(*problem++));
        problems.back().image = static_cast<int64_t>(images.size());
      }
      images.push_back(all.images[i]);
      names.add(all.file_names[i]);
      rows.push_back(all.row_begins[i + 1]);
      caption_ranges.insert(caption_ranges.end(), all.captions.begin() + all.caption_begins[i],
                            all.captions.begin() + all.caption_begins[i + 1]);
      captions.push_back(static_cast<uint32_t>(caption_ranges.size()));
    }
    all.images = std::move(images);
    all.file_names = std::move(names);
    all.row_begins = std::move(rows);
    all.caption_begins = std::move(captions);
    all.captions = std::move(caption_ranges);
    all.problems = std::move(problems);
  }

  CocoRows in_;
  const CocoOptions& options_;
  const std::string& path_;
  CocoAnnotations out_;
  std::vector<int32_t> places_;
  std::vector<size_t> left_out_;  // row indices, ascending
};

}  // namespace

CocoAnnotations join_coco(CocoRows rows, const CocoOptions& options, const std::string& path) {
  return CocoJoin(std::move(rows), options, path).join();
}

}  // namespace headrace
