// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "headrace/base/json_reader.h"
#include "headrace/formats/coco/coco.h"
#include "headrace/sources/readable_text.h"

namespace headrace {

const ErrorCode kMalformedCoco{
    "HR0433", ErrorKind::kData, "malformed COCO annotations",
    "The file is not JSON, or does not have COCO's structure: an object with the lists \"images\" "
    "(each with an integer id and a file_name), \"annotations\" (each with an image_id) and "
    "\"categories\" (each with an id and a name). The message gives the byte offset. The file may "
    "be truncated."};
const ErrorCode kCocoMismatch{
    "HR0434", ErrorKind::kData, "inconsistent COCO annotations",
    "The lists of the file contradict each other: an id refers to two images or two categories, "
    "or annotations refer to unlisted images. Nothing is guessed, because labels or boxes would "
    "be assigned to the wrong image."};
const ErrorCode kBadCocoRecord{
    "HR0435", ErrorKind::kData, "invalid COCO annotation",
    "An annotation of this image is invalid: a malformed box or one outside the image, an "
    "unlisted category, an outline that cannot be drawn. Only this record is bad, and on_error= "
    "decides what happens to it; fields=(\"image\",) reads the image without annotations."};

namespace {

constexpr size_t kLongestPath = 4096;

// A key that occurs twice in one object is ambiguous.
class SeenKeys {
 public:
  explicit SeenKeys(JsonReader& json) : json_(json) {}
  // `key`: a small integer that identifies this key.
  void see(int key, uint64_t offset) {
    if (bits_ >> key & 1) json_.fail("the key \"" + std::string(json_.key()) + "\" twice", offset);
    bits_ |= 1u << key;
  }
  bool has(int key) const { return bits_ >> key & 1; }

 private:
  JsonReader& json_;
  unsigned bits_ = 0;
};

int64_t read_id(JsonReader& json, const char* what) {
  if (json.type() != JsonReader::Type::kNumber) {
    json.fail(std::string(what) + " must be an integer");
    return 0;
  }
  const uint64_t offset = json.offset();
  const std::optional<int64_t> integer = json.number().integer;
  if (!integer) json.fail(std::string(what) + " must fit into a 64-bit integer", offset);
  return integer.value_or(0);
}

// A number, or NaN for anything else.
double read_number(JsonReader& json) {
  if (json.type() == JsonReader::Type::kNumber) return json.number().value;
  json.skip();
  return std::numeric_limits<double>::quiet_NaN();
}

int32_t read_side(JsonReader& json) {
  if (json.type() == JsonReader::Type::kNull) {
    json.null();
    return 0;
  }
  const uint64_t offset = json.offset();
  const double value = read_number(json);
  if (!(value >= 0 && value <= std::numeric_limits<int32_t>::max() && value == std::floor(value))) {
    json.fail("width and height of an image must be integers", offset);
    return 0;
  }
  return static_cast<int32_t>(value);
}

JsonRange read_range(JsonReader& json) {
  if (json.type() == JsonReader::Type::kNull) {
    json.null();
    return {};
  }
  JsonRange range{json.offset(), 0};
  json.skip();
  const uint64_t bytes = json.offset() - range.offset;
  if (bytes > std::numeric_limits<uint32_t>::max())
    json.fail("a value of 4 GiB or more", range.offset);
  range.bytes = static_cast<uint32_t>(bytes);
  return range;
}

class CocoParser {
 public:
  CocoParser(JsonReader& json, CocoRows& rows) : json_(json), rows_(rows) {}

  void parse() {
    SeenKeys seen(json_);
    enum { kImages, kAnnotations, kCategories };
    for (json_.begin_object(); json_.next_key();) {
      const uint64_t offset = json_.offset();
      if (json_.key() == "images") {
        seen.see(kImages, offset);
        for (json_.begin_array(); json_.next_element();) image();
      } else if (json_.key() == "annotations") {
        seen.see(kAnnotations, offset);
        for (json_.begin_array(); json_.next_element();) annotation();
      } else if (json_.key() == "categories") {
        seen.see(kCategories, offset);
        rows_.has_categories = true;
        for (json_.begin_array(); json_.next_element();) category();
      } else {
        json_.skip();
      }
    }
    const uint64_t end = json_.offset();
    json_.end();
    if (!seen.has(kImages)) json_.fail("no list \"images\"", end);
    if (!seen.has(kAnnotations)) json_.fail("no list \"annotations\"", end);
  }

 private:
  void image() {
    const uint64_t begin = json_.offset();
    CocoImage image;
    SeenKeys seen(json_);
    enum { kId, kName, kWidth, kHeight };
    for (json_.begin_object(); json_.next_key();) {
      const std::string_view key = json_.key();
      const uint64_t offset = json_.offset();
      if (key == "id") {
        seen.see(kId, offset);
        image.id = read_id(json_, "the id of an image");
      } else if (key == "file_name") {
        seen.see(kName, offset);
        file_name(offset);
      } else if (key == "width") {
        seen.see(kWidth, offset);
        image.width = read_side(json_);
      } else if (key == "height") {
        seen.see(kHeight, offset);
        image.height = read_side(json_);
      } else {
        json_.skip();
      }
    }
    if (!seen.has(kId)) json_.fail("an image without an id", begin);
    if (!seen.has(kName)) json_.fail("an image without a file_name", begin);
    if (json_.ok()) rows_.images.push_back(image);
    rows_.image_offsets.push_back(begin);
  }

  void file_name(uint64_t offset) {
    const std::string_view name = json_.string();
    if (name.empty() || name.size() >= kLongestPath || name.find('\0') != name.npos) {
      json_.fail("an invalid file_name", offset);
    }
    if (json_.ok()) rows_.file_names.add(name);
  }

  void category() {
    const uint64_t begin = json_.offset();
    CocoCategory category;
    SeenKeys seen(json_);
    enum { kId, kName, kKeypoints };
    for (json_.begin_object(); json_.next_key();) {
      const std::string_view key = json_.key();
      const uint64_t offset = json_.offset();
      if (key == "id") {
        seen.see(kId, offset);
        category.id = read_id(json_, "the id of a category");
      } else if (key == "name") {
        seen.see(kName, offset);
        category.name = json_.string();
      } else if (key == "keypoints" && json_.type() == JsonReader::Type::kArray) {
        seen.see(kKeypoints, offset);
        for (json_.begin_array(); json_.next_element(); ++category.keypoints) json_.skip();
      } else {
        json_.skip();
      }
    }
    if (!seen.has(kId)) json_.fail("a category without an id", begin);
    if (!seen.has(kName)) json_.fail("a category without a name", begin);
    if (json_.ok()) rows_.categories.push_back(std::move(category));
  }

  void annotation() {
    CocoRow row;
    row.offset = json_.offset();
    problem_ = {};
    SeenKeys seen(json_);
    enum { kImage, kCategory, kBox, kArea, kCrowd, kSegmentation, kKeypoints, kCaption };
    for (json_.begin_object(); json_.next_key();) {
      const std::string_view key = json_.key();
      const uint64_t offset = json_.offset();
      if (key == "image_id") {
        seen.see(kImage, offset);
        row.image_id = read_id(json_, "the image_id of an annotation");
      } else if (key == "category_id") {
        seen.see(kCategory, offset);
        row.category_id = read_id(json_, "the category_id of an annotation");
        row.has_category = true;
      } else if (key == "bbox") {
        seen.see(kBox, offset);
        box(row);
      } else if (key == "area") {
        seen.see(kArea, offset);
        row.area = static_cast<float>(read_number(json_));
        row.has_area = true;
        if (!(std::isfinite(row.area) && row.area >= 0)) problem("an invalid area");
      } else if (key == "iscrowd") {
        seen.see(kCrowd, offset);
        row.crowd = crowd();
      } else if (key == "segmentation") {
        seen.see(kSegmentation, offset);
        row.segmentation = read_range(json_);
      } else if (key == "keypoints") {
        seen.see(kKeypoints, offset);
        row.keypoints = read_range(json_);
      } else if (key == "caption") {
        seen.see(kCaption, offset);
        row.caption = read_range(json_);
      } else {
        json_.skip();
      }
    }
    if (!seen.has(kImage)) json_.fail("an annotation without an image_id", row.offset);
    if (!json_.ok()) return;
    if (!problem_.empty()) rows_.problems.push_back({rows_.rows.size(), std::move(problem_)});
    rows_.rows.push_back(row);
  }

  void problem(std::string what) {
    if (problem_.empty()) problem_ = std::move(what);
  }

  void box(CocoRow& row) {
    if (json_.type() != JsonReader::Type::kArray) {
      problem("a box that is not a list of numbers");
      return json_.skip();
    }
    int64_t count = 0;
    bool finite = true;
    for (json_.begin_array(); json_.next_element(); ++count) {
      const float value = static_cast<float>(read_number(json_));
      finite &= std::isfinite(value);
      if (count < 4) row.box[count] = value;
    }
    row.has_box = count > 0;
    if (count != 4 && count != 0) {
      problem("a box of " + count_text(count, "number") + ", not of four");
    } else if (!finite) {
      problem("a box with a value that is not finite");
    } else if (row.box[2] < 0 || row.box[3] < 0) {
      problem("a box of negative size");
    }
  }

  uint8_t crowd() {
    if (json_.type() == JsonReader::Type::kBool) return json_.boolean();
    const double value = read_number(json_);
    if (value != 0 && value != 1) problem("an iscrowd that is neither 0 nor 1");
    return value == 1;
  }

  JsonReader& json_;
  CocoRows& rows_;
  std::string problem_;
};

}  // namespace

const CocoProblem* CocoAnnotations::problem_of(int64_t image) const {
  const auto at = std::lower_bound(problems.begin(), problems.end(), image,
                                   [](const CocoProblem& p, int64_t i) { return p.image < i; });
  return at != problems.end() && at->image == image ? &*at : nullptr;
}

CocoAnnotations read_coco(const File& file, const CocoOptions& options, const Progress& progress) {
  uint64_t at = 0;
  JsonReader json([&](std::span<uint8_t> out) -> Result<size_t> {
    const size_t count = std::min<uint64_t>(out.size(), file.size() - at);
    if (Result<void> read = file.read(at, out.first(count)); !read) return std::move(read.error());
    at += count;
    if (progress) progress(static_cast<int64_t>(at), static_cast<int64_t>(file.size()));
    return count;
  });
  CocoRows rows;
  CocoParser(json, rows).parse();
  if (!json.ok()) throw Exception(json.error(kMalformedCoco, file.path()));
  return join_coco(std::move(rows), options, file.path());
}

bool looks_like_coco(std::string_view text) {
  JsonReader json(text);
  if (json.type() != JsonReader::Type::kObject) return false;
  for (json.begin_object(); json.next_key(); json.skip()) {
    const std::string_view key = json.key();
    if ((key == "images" || key == "annotations") && json.type() == JsonReader::Type::kArray) {
      return true;
    }
  }
  return false;
}

}  // namespace headrace
