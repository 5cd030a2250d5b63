// SPDX-License-Identifier: Apache-2.0
// Expected masks are pycocotools' (2.0.11); the annotations are written by hand.
#include "headrace/formats/coco/coco_masks.h"
#include "headrace/formats/format.h"
#include "headrace/sources/source_test_reads.h"
#include "headrace/storage/temporary_folder.h"

namespace headrace {
namespace {

using Given = std::map<std::string, ParamValue>;

constexpr std::string_view kImages =
    R"("images": [{"id": 7, "file_name": "b.jpg", "width": 6, "height": 5},
                  {"id": 3, "file_name": "a.jpg", "width": 6, "height": 5, "license": {"x": [1]}}])";
constexpr std::string_view kCategories =
    R"("categories": [{"id": 18, "name": "dog"}, {"id": 2, "name": "cat"}])";

class Coco : public testing::Test {
 protected:
  Coco() {
    folder.write("a.jpg", "image a");
    folder.write("b.jpg", "image b");
  }
  SourcePtr open_text(std::string_view text, const Given& given = {}) const {
    return open_source(folder.write("c.json", text), given);
  }
  // With the two pictures and the two categories.
  SourcePtr open(std::string_view annotations, const Given& given = {}) const {
    return open_text(whole(annotations), given);
  }
  static std::string whole(std::string_view annotations) {
    return "{\"info\": {}, " + std::string(kImages) + ", \"annotations\": [" +
           std::string(annotations) + "], " + std::string(kCategories) + "}";
  }
  Error refusal_of_text(std::string_view text, Given given = {}) const {
    given["format"] = std::string("coco");
    return error_of([&] { open_text(text, given); });
  }
  Error refusal(std::string_view annotations, const Given& given = {}) const {
    return refusal_of_text(whole(annotations), given);
  }
  TemporaryFolder folder;
};

constexpr std::string_view kThree =
    R"({"id": 1, "image_id": 7, "category_id": 18, "bbox": [1, 2, 3, 2.5], "area": 4.5, "iscrowd": 0},
       {"id": 2, "image_id": 7, "category_id": 2, "bbox": [0, 0, 6, 5], "area": 30, "iscrowd": 1},
       {"id": 3, "image_id": 7, "category_id": 18, "bbox": [0.5, 0.5, 1, 2]})";

TEST_F(Coco, ImagesAreSortedByIdWithRowsInFileOrder) {
  const SourcePtr source = open(kThree);
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->key(0), folder / "a.jpg");
  EXPECT_EQ(source->integer_column("image_id"), (std::vector<int64_t>{3, 7}));
  EXPECT_EQ(source->classes(), (std::vector<std::string>{"cat", "dog"}));
  const RecordData record = read_record(*source, 1);
  ASSERT_TRUE(record.result);
  EXPECT_EQ(text_of(field_of(*source, record, "image")), "image b");
  EXPECT_EQ(numbers_of<float>(field_of(*source, record, "boxes")),
            (std::vector<float>{1, 2, 4, 4.5, 0, 0, 6, 5, .5, .5, 1.5, 2.5}));
  EXPECT_EQ(field_of(*source, record, "boxes").shape, (Shape{3, 4}));
  EXPECT_EQ(numbers_of<int64_t>(field_of(*source, record, "labels")),
            (std::vector<int64_t>{1, 0, 1}));
  EXPECT_EQ(numbers_of<uint8_t>(field_of(*source, record, "crowd")),
            (std::vector<uint8_t>{0, 1, 0}));
  EXPECT_EQ(numbers_of<float>(field_of(*source, record, "areas")),
            (std::vector<float>{4.5, 30, 2}));
  EXPECT_EQ(field_of(*source, record, "image_id").scalar, 7);
  EXPECT_EQ(source->description(),
            "coco " + (folder / "c.json") + " (2 records, 3 boxes, 2 classes)");
}

TEST_F(Coco, AnImageWithoutRowsHasEmptyTensors) {
  const SourcePtr source = open(kThree);
  const RecordData record = read_record(*source, 0);
  ASSERT_TRUE(record.result);
  EXPECT_EQ(field_of(*source, record, "boxes").shape, (Shape{0, 4}));
  EXPECT_EQ(field_of(*source, record, "labels").shape, (Shape{0}));
  EXPECT_TRUE(field_of(*source, record, "boxes").bytes.empty());
}

TEST_F(Coco, BoxFormatsAndIdsFollowTheArguments) {
  SourcePtr source =
      open(kThree, {{"boxes", std::string("xywh")}, {"category_ids", std::string("keep")}});
  RecordData record = read_record(*source, 1);
  EXPECT_EQ(numbers_of<float>(field_of(*source, record, "boxes"))[3], 2.5F);
  EXPECT_EQ(numbers_of<int64_t>(field_of(*source, record, "labels")),
            (std::vector<int64_t>{18, 2, 18}));
  ASSERT_EQ(source->classes().size(), 19);  // names indexed by id, empty for ids without a category
  EXPECT_EQ(source->classes()[2], "cat");
  EXPECT_EQ(source->classes()[18], "dog");
  source = open(kThree, {{"boxes", std::string("cxcywh")}});
  record = read_record(*source, 1);
  const std::vector<float> boxes = numbers_of<float>(field_of(*source, record, "boxes"));
  EXPECT_EQ((std::vector<float>{boxes.begin(), boxes.begin() + 4}),
            (std::vector<float>{2.5, 3.25, 3, 2.5}));
}

TEST_F(Coco, ThresholdsDropRows) {
  const auto labels = [&](const Given& given) {
    const SourcePtr source = open(kThree, given);
    const int64_t last = source->size() - 1;
    return numbers_of<int64_t>(field_of(*source, read_record(*source, last), "labels"));
  };
  EXPECT_EQ(labels({{"skip_crowd", true}}), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(labels({{"min_size", 1.5}}), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(labels({{"min_area", 4.5}}), (std::vector<int64_t>{1, 0}));
  const SourcePtr filled = open(kThree, {{"skip_empty", true}});
  ASSERT_EQ(filled->size(), 1);
  EXPECT_EQ(filled->key(0), folder / "b.jpg");
  EXPECT_EQ(numbers_of<int64_t>(field_of(*filled, read_record(*filled, 0), "labels")).size(), 3);
  EXPECT_EQ(refusal(kThree, {{"skip_empty", true}, {"min_size", 100.0}}).code->id, "HR0436");
}

// pycocotools: frPyObjects([[1, 1, 4, 1, 4, 3.5, 1, 3]], 5, 6), decoded.
TEST_F(Coco, MasksEqualPycocotools) {
  const std::string rows =
      R"({"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2.5],
          "segmentation": [[1, 1, 4, 1, 4, 3.5, 1, 3]]},
         {"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2.5], "iscrowd": 1,
          "segmentation": {"counts": [6, 2, 3, 3, 2, 3, 11], "size": [5, 6]}},
         {"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2.5], "iscrowd": 1,
          "segmentation": {"size": [5, 6], "counts": "6231O09"}})";
  const SourcePtr source = open(rows, {{"masks", true}});
  const RecordData record = read_record(*source, 0);
  ASSERT_TRUE(record.result) << record.result.error().message();
  const FieldData& masks = field_of(*source, record, "masks");
  ASSERT_EQ(masks.shape, (Shape{3, 5, 6}));
  const std::vector<uint8_t> got = numbers_of<uint8_t>(masks);
  const std::vector<uint8_t> first(got.begin(), got.begin() + 30);
  EXPECT_EQ(first, (std::vector<uint8_t>{0, 0, 0, 0, 0, 0,  //
                                         0, 1, 1, 1, 0, 0,  //
                                         0, 1, 1, 1, 0, 0,  //
                                         0, 0, 0, 0, 0, 0,  //
                                         0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(std::vector<uint8_t>(got.begin() + 30, got.begin() + 60),
            (std::vector<uint8_t>{0, 0, 0, 0, 0, 0,  //
                                  0, 1, 1, 1, 0, 0,  //
                                  0, 1, 1, 1, 0, 0,  //
                                  0, 0, 1, 1, 0, 0,  //
                                  0, 0, 0, 0, 0, 0}));
}

TEST_F(Coco, MissingKeypointsAreZero) {
  const SourcePtr source = open(R"({"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2],
                                    "keypoints": [1, 2, 2, 3.5, 4, 1]},
                                   {"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2]})",
                                {{"keypoints", true}});
  const RecordData record = read_record(*source, 0);
  ASSERT_TRUE(record.result);
  EXPECT_EQ(field_of(*source, record, "keypoints").shape, (Shape{2, 2, 3}));
  EXPECT_EQ(numbers_of<float>(field_of(*source, record, "keypoints")),
            (std::vector<float>{1, 2, 2, 3.5, 4, 1, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Coco, CaptionHasTheFirstAndCaptionsHasAll) {
  const SourcePtr source =
      open_text("{" + std::string(kImages) +
                R"(, "annotations": [{"image_id": 7, "id": 1, "caption": "A \"dog\"."},
                                     {"image_id": 7, "id": 2, "caption": "Two\nlines"}]})");
  std::vector<std::string> names;
  for (const Field& f : source->schema()) names.push_back(f.name);
  EXPECT_EQ(names, (std::vector<std::string>{"image", "image_id", "caption", "captions"}));
  RecordData record = read_record(*source, 1);
  EXPECT_EQ(text_of(field_of(*source, record, "caption")), "A \"dog\".");
  EXPECT_EQ(text_of(field_of(*source, record, "captions")), R"(["A \"dog\".", "Two\nlines"])");
  record = read_record(*source, 0);
  EXPECT_EQ(text_of(field_of(*source, record, "caption")), "");
  EXPECT_EQ(text_of(field_of(*source, record, "captions")), "[]");
}

TEST_F(Coco, ABadAnnotationAffectsOnlyItsImage) {
  const std::string good = R"({"image_id": 7, "category_id": 2, "bbox": [0, 0, 1, 1]})";
  const auto what = [&](const std::string& rest) {
    const std::string bad = R"({"image_id": 3, )" + rest + "}";
    const SourcePtr source = open(good + ", " + bad, {});
    EXPECT_TRUE(read_record(*source, 1).result) << rest;
    EXPECT_NE(source->description().find("1 record with bad annotations"), std::string::npos);
    const RecordData record = read_record(*source, 0);
    if (record.result) return std::string();
    const Error& error = record.result.error();
    EXPECT_EQ(error.code->id, "HR0435");
    EXPECT_EQ(error.where.file, folder / "c.json");
    EXPECT_EQ(error.where.member, "a.jpg");
    EXPECT_EQ(error.where.offset, int64_t(whole(good + ", " + bad).find(bad)));
    std::vector<bool> wanted(source->schema().size());
    wanted[0] = true;  // the picture itself is good
    EXPECT_TRUE(read_record(*source, 0, wanted).result);
    return error.what;
  };
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [NaN, 0, 1, 1])"),
            "a box with a value that is not finite");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [1e999, 0, 1, 1])"),
            "a box with a value that is not finite");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [0, 0, 1])"), "a box of 3 numbers, not of four");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": "0 0 1 1")"), "a box that is not a list of numbers");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [0, 0, -1, 1])"), "a box of negative size");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [7, 0, 1, 1])"), "a box that lies outside the image");
  EXPECT_EQ(what(R"("category_id": 9, "bbox": [0, 0, 1, 1])"),
            "category_id 9, which is not listed");
  EXPECT_EQ(what(R"("bbox": [0, 0, 1, 1])"), "an annotation without a category_id");
  EXPECT_EQ(what(R"("category_id": 2)"), "an annotation without a box");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [0, 0, 1, 1], "area": -1)"), "an invalid area");
  EXPECT_EQ(what(R"("category_id": 2, "bbox": [0, 0, 1, 1], "iscrowd": 2)"),
            "an iscrowd that is neither 0 nor 1");
}

TEST_F(Coco, AnInvalidMaskAffectsOnlyItsImage) {
  const auto what = [&](const std::string& segmentation) {
    const SourcePtr source =
        open(R"({"image_id": 3, "category_id": 2, "bbox": [0, 0, 1, 1], "segmentation": )" +
                 segmentation + "}",
             {{"masks", true}});
    const RecordData record = read_record(*source, 0);
    EXPECT_FALSE(record.result) << segmentation;
    return record.result ? std::string() : record.result.error().what;
  };
  EXPECT_EQ(what("[]"), "a segmentation without a polygon");
  EXPECT_EQ(what("[[1, 2]]"), "a polygon of 2 numbers; points have two each");
  EXPECT_EQ(what("[[1, 2, 3, 4, 5, 6, 7]]"), "a polygon of 7 numbers; points have two each");
  EXPECT_EQ(what("[[1, 2, 3, 4, 5, NaN]]"), "a polygon with a vertex at nan");
  EXPECT_EQ(what("[[1, 2, 3, 4, 5, 1e999]]"), "a polygon with a vertex at inf");
  EXPECT_EQ(what("[[0, 0, 1e8, 0, 1, 1]]"), "polygons whose boundaries are too long to draw");
  EXPECT_EQ(what("[[\"x\"]]"), "a number was expected, not '\"'");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": [10, 21]})"),
            "a run-length code that is longer than the image");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": [9223372036854775807, 9223372036854775807]})"),
            "a run-length code that is longer than the image");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": [10, 19]})"),
            "a run-length code of 29 pixels, but the image has 30");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": [-5, 35]})"), "a run-length code with a run of -5");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": [9223372036854775808]})"),
            "a run-length code with a run of -1");
  EXPECT_EQ(what(R"({"size": [6, 5], "counts": [30]})"),
            "a run-length code that differs from the image in size");
  EXPECT_EQ(what(R"({"size": [5, 6]})"), "a segmentation without counts");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": "oooooooooooooo"})"), "a truncated run-length code");
  EXPECT_EQ(what(R"({"size": [5, 6], "counts": "  "})"),
            "a run-length code with an invalid character");
}

TEST_F(Coco, SyntaxErrorsAreReportedWithTheirOffset) {
  const auto expect = [&](const std::string& text, std::string_view what, std::string_view at) {
    const Error error = refusal_of_text(text);
    ASSERT_TRUE(error.code);
    EXPECT_EQ(error.code->id, "HR0433") << text;
    EXPECT_EQ(error.what, what);
    EXPECT_EQ(error.where.offset, int64_t(text.find(at)));
  };
  expect("[1]", "an object was expected, not '['", "[");
  EXPECT_EQ(refusal_of_text(R"({"images": []})").what, "no list \"annotations\"");
  expect(R"({"images": {}, "annotations": []})", "an array was expected, not '{'", "{}");
  expect(R"({"images": [{"id": "3"}]})", "the id of an image must be an integer", "\"3\"");
  expect(R"({"images": [{"id": 9223372036854775808}]})",
         "the id of an image must fit into a 64-bit integer", "9223372036854775808");
  expect(R"({"images": [{"id": 3}]})", "an image without a file_name", "{\"id\"");
  expect(R"({"images": [{"id": 3, "file_name": ""}]})", "an invalid file_name", "\"\"");
  expect(R"({"images": [{"id": 3, "id": 4}]})", "the key \"id\" twice", "4");
  expect(R"({"images": [], "annotations": [], "images": [1]})", "the key \"images\" twice", "[1]");
  expect(R"({"images": [], "annotations": [{"id": 1}]})", "an annotation without an image_id",
         "{\"id\"");
  expect(R"({"images": [], "annotations": [{"image_id": 1.5}]})",
         "the image_id of an annotation must fit into a 64-bit integer", "1.5");
  expect(R"({"images": [{"id": 1, "file_name": "x", "width": -4}]})",
         "width and height of an image must be integers", "-4");
  const Error deep = refusal_of_text("{\"info\": " + std::string(100000, '['));
  EXPECT_EQ(deep.what, "nested more than 128 levels deep");
}

TEST_F(Coco, ContradictionsAreRejected) {
  EXPECT_EQ(
      refusal_of_text(R"({"images": [{"id": 1, "file_name": "a"}, {"id": 1, "file_name": "b"}],
                                "annotations": []})")
          .message()
          .substr(0, 69),
      "HR0434 inconsistent COCO annotations: the id 1 refers to two images\n ");
  EXPECT_EQ(refusal_of_text("{" + std::string(kImages) + R"(, "annotations": [],
              "categories": [{"id": 1, "name": "x"}, {"id": 1, "name": "y"}]})")
                .what,
            "the id 1 refers to two categories: 'x' and 'y'");
  EXPECT_EQ(
      refusal_of_text("{" + std::string(kImages) +
                      R"(, "annotations": [{"image_id": 3, "category_id": 1, "bbox": [0,0,1,1]}]})")
          .what,
      "annotations have boxes, but the file has no list \"categories\"");
  const std::string orphan = R"({"image_id": 99, "category_id": 2, "bbox": [0, 0, 1, 1]})";
  EXPECT_EQ(refusal(orphan).what,
            "1 annotation of images that are not listed; the first has image_id 99");
  EXPECT_EQ(refusal(orphan).hint, "orphans=\"drop\" skips them");
  EXPECT_NE(open(orphan, {{"orphans", std::string("drop")}})
                ->description()
                .find("1 annotation of unlisted images skipped"),
            std::string::npos);
}

TEST_F(Coco, MissingFilesAreRejected) {
  EXPECT_EQ(refusal(kThree, {{"masks", true}}).code->id, "HR0436");
  EXPECT_EQ(refusal(kThree, {{"keypoints", true}}).code->id, "HR0436");
  EXPECT_EQ(refusal(kThree, {{"captions", true}}).code->id, "HR0436");
  EXPECT_EQ(refusal(kThree, {{"images", folder / "none"}}).what,
            "images=\"" + (folder / "none") + "\" is not a folder");
  EXPECT_EQ(refusal_of_text(R"({"images": [], "annotations": []})").code->id, "HR0436");
}

TEST_F(Coco, ImagesAreSearchedInCocosFolders) {
  const std::string text = whole(kThree);
  for (const std::string place : {"x/train2017/", "y/annotations/images/", "z/annotations/"}) {
    folder.write(place + "a.jpg", "picture");
    const std::string root = place.substr(0, 1);
    const std::string file = folder.write(root + "/annotations/instances_train2017.json", text);
    EXPECT_EQ(open_source(file)->key(0), folder / (place + "a.jpg"));
  }
  const std::string lonely = folder.write("n/annotations/instances_val.json", text);
  const Error error = error_of([&] { open_source(lonely); });
  EXPECT_EQ(error.code->id, "HR0436");
  EXPECT_NE(error.what.find("'" + (folder / "n/val/") + "'"), std::string::npos) << error.what;
}

TEST_F(Coco, AFolderInsteadOfTheAnnotationsIsRejectedWithAHint) {
  const Error error =
      error_of([&] { open_source(folder.path(), {{"format", std::string("coco")}}); });
  EXPECT_EQ(error.code->id, "HR0436");
  EXPECT_EQ(error.what, "\"" + folder.path() + "\" is a folder");
  EXPECT_NE(error.hint.find("annotations/instances"), std::string::npos);
}

TEST_F(Coco, AFileTruncatedAnywhereIsAnErrorAndFlippedBytesNeverCrash) {
  const std::string text = whole(std::string(kThree) +
                                 R"(,{"image_id": 3, "category_id": 2, "bbox": [1, 1, 3, 2.5],
                                      "segmentation": {"size": [5, 6], "counts": "6231O09"}})");
  for (size_t part = 0; part < 64; ++part) refusal_of_text(text.substr(0, text.size() * part / 64));
  int opened = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1 << i % 8;
    try {
      const SourcePtr source =
          open_text(damaged, {{"format", std::string("coco")}, {"masks", true}});
      for (int64_t record = 0; record < source->size(); ++record) read_record(*source, record);
      ++opened;
    } catch (const Exception&) {
    }
  }
  EXPECT_GT(opened, 0);
}

TEST_F(Coco, TheFingerprintDependsOnTheRecordsAlone) {
  const uint64_t print = open(kThree)->fingerprint();
  EXPECT_EQ(open(kThree)->fingerprint(), print);
  EXPECT_NE(open(kThree, {{"skip_crowd", true}})->fingerprint(), print);
  std::string other(kThree);
  other.replace(other.find("2.5]"), 3, "2.6");
  EXPECT_NE(open(other)->fingerprint(), print);
}

TEST_F(Coco, OtherJsonIsNotClaimed) {
  for (std::string_view text :
       {R"({"images": 3})", R"([{"images": []}])", R"({"x": {"images": []}})", "", "{", "text"}) {
    EXPECT_THROW(open_text(text), Exception) << text;
  }
}

// 428 bytes once took 13 seconds: a picture with a large declared size, and polygons that fill it.
TEST_F(Coco, MasksThatCoverAnImageTooOftenAreABadRecord) {
  const auto with = [&](int polygons) {
    std::string outlines;
    for (int i = 0; i < polygons; ++i) {
      outlines += std::string(i ? "," : "") + "[0,0,4096,0,4096,4096,0,4096]";
    }
    return open_text(R"({"images": [{"id": 7, "file_name": "b.jpg", "width": 4096, "height": 4096}],
        "annotations": [{"id": 1, "image_id": 7, "category_id": 2, "bbox": [0, 0, 9, 9], "area": 9,
        "segmentation": [)" +
                         outlines + "]}], " + std::string(kCategories) + "}",
                     {{"masks", true}});
  };
  EXPECT_TRUE(read_record(*with(4), 0).result);
  const RecordData refused = read_record(*with(5), 0);
  ASSERT_FALSE(refused.result);
  EXPECT_EQ(refused.result.error().what, "polygons that cover the image many times");
}

TEST_F(Coco, OutlinesOfARecordHaveALimitedLength) {
  CocoMaskPainter painter(16, 16, 3);
  std::vector<uint8_t> plane(256);
  const std::vector<double> far = {-4e6, 1, 4e6, 2, 4e6, 3};
  int drawn = 0;
  std::string why;
  while (drawn < 100 && (why = painter.polygon(far, plane)).empty()) ++drawn;
  EXPECT_LT(drawn, 10);
  EXPECT_EQ(why, "polygons whose boundaries are too long to draw");
}

// Compared with the definition, for pictures wider and higher than a tile.
TEST_F(Coco, RunsAreFilledDownTheColumnsForAnySize) {
  for (const auto& [height, width] : {std::pair(1, 300), std::pair(1300, 3), std::pair(700, 130)}) {
    CocoMaskPainter painter(height, width);
    std::vector<uint8_t> plane(size_t(height) * width), expected(plane.size());
    std::vector<int64_t> runs;
    int64_t at = 0;
    for (int64_t run = 0; at < painter.pixels(); run = (run * 7 + 13) % 1711) {
      const int64_t take = std::min(run, painter.pixels() - at);
      for (int64_t i = at; i < at + take && runs.size() % 2 == 1; ++i) {
        expected[size_t(i % height * width + i / height)] = 1;
      }
      runs.push_back(take);
      at += take;
    }
    EXPECT_EQ(painter.counts(runs, plane), "");
    EXPECT_EQ(plane, expected) << height << " x " << width;
  }
}

}  // namespace
}  // namespace headrace
