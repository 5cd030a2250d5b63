// SPDX-License-Identifier: Apache-2.0
// Values become fields: pictures, Caffe's messages, bytes. Messages are encoded here by hand,
// following caffe.proto.
#include "headrace/formats/lmdb/lmdb_values.h"

#include <gtest/gtest.h>

#include "headrace/formats/lmdb/lmdb_test_environment.h"

namespace headrace {
namespace {

const std::string kJpeg("\xFF\xD8\xFF\xE0\0\x10JFIF\0\1\1\0\0", 16);

std::string datum(int channels, int height, int width, const std::string& data, int64_t label,
                  const std::string& rest = {}) {
  return proto_number(1, uint64_t(channels)) + proto_number(2, uint64_t(height)) +
         proto_number(3, uint64_t(width)) + proto_bytes(4, data) +
         proto_number(5, static_cast<uint64_t>(label)) + rest;
}

std::string encoded_datum(const std::string& picture, int64_t label) {
  return datum(3, 8, 8, picture, label, proto_number(7, 1));
}

std::string raw_floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

class LmdbValuesTest : public testing::Test {
 protected:
  // Like lmdb_values(), with the result owned by the test.
  const LmdbValues& make(const std::vector<std::string>& samples, std::string_view kind = {},
                         bool bgr = true) {
    std::vector<ValueBytes> spans;
    for (const std::string& sample : samples) spans.push_back(bytes_of(sample));
    values_ = lmdb_values(kind, spans, {.bgr = bgr});
    return *values_;
  }
  std::string refusal(const std::vector<std::string>& samples, std::string_view kind = {}) {
    try {
      return "read as " + std::string(make(samples, kind).name());
    } catch (const Exception& exception) {
      return exception.what();
    }
  }
  static ValueBytes bytes_of(const std::string& text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }
  // Reads one value; spans in the result stay valid until the next call.
  std::string parse(const LmdbValues& values, const std::string& value) {
    held_ = value;
    record_ = RecordData();
    record_.fields.resize(values.schema().size());
    record_.owned.resize(values.buffers());
    Result<void> parsed =
        values.parse(bytes_of(held_), std::vector<bool>(values.schema().size(), true), record_);
    return parsed ? "" : parsed.error().what;
  }
  std::string field(size_t number) const {
    const auto& bytes = record_.fields[number].bytes;
    return {bytes.begin(), bytes.end()};
  }
  // The label as read by parts; `read` is set to the number of bytes read for it.
  static std::string label(const LmdbValues& values, const std::string& value,
                           size_t* read = nullptr) {
    size_t bytes = 0;
    const Result<int64_t> found =
        values.label(value.size(), [&](uint64_t offset, std::span<uint8_t> out) -> Result<void> {
          EXPECT_LE(offset + out.size(), value.size());
          std::copy_n(value.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
          bytes += out.size();
          return {};
        });
    if (read) *read = bytes;
    return found ? std::to_string(*found) : found.error().what;
  }

  std::unique_ptr<LmdbValues> values_;
  std::string held_;
  RecordData record_;
};

TEST_F(LmdbValuesTest, are_recognized_by_the_first_records) {
  EXPECT_EQ(make({kJpeg, kJpeg}).name(), "image");
  EXPECT_EQ(make({std::string("RIFF\x20\0\0\0WEBPVP8 ", 16)}).name(), "image");
  EXPECT_EQ(make({encoded_datum(kJpeg, 3)}).name(), "datum");
  EXPECT_EQ(make({"text", kJpeg}).name(), "bytes");
  EXPECT_EQ(make({""}).name(), "bytes");
  EXPECT_EQ(make({}).name(), "bytes");
}

TEST_F(LmdbValuesTest, one_of_the_first_records_may_be_bad) {
  const std::string good = encoded_datum(kJpeg, 3);
  EXPECT_EQ(make({"\x22\xFF", good, good}).name(), "datum");
  EXPECT_EQ(make({kJpeg, "x", kJpeg}).name(), "image");
  EXPECT_EQ(make({"x", good, "y"}).name(), "bytes");
  EXPECT_EQ(make({good, datum(1, 1, 1, "x", 0), good}).name(), "bytes");  // not one kind
}

TEST_F(LmdbValuesTest, pickles_and_msgpack_are_rejected_with_a_hint) {
  const std::string pickle("\x80\x04\x95\x05\0\0\0\0\0\0\0K\x01.", 14);
  EXPECT_NE(refusal({pickle}).find("HR0484"), std::string::npos);
  EXPECT_NE(refusal({pickle}).find("pickles"), std::string::npos);
  // ["abc", {"x": 1.5}, bin of 3, nil]
  const std::string message(
      "\x94\xA3"
      "abc\x81\xA1x\xCB\x3F\xF8\0\0\0\0\0\0\xC4\x03\1\2\3\xC0",
      23);
  EXPECT_NE(refusal({message}).find("msgpack"), std::string::npos) << refusal({message});
  EXPECT_EQ(refusal({message.substr(0, 20)}), "read as bytes");
  EXPECT_EQ(refusal({std::string("\x93NUMPY\1\0", 8)}), "read as bytes");
  EXPECT_EQ(refusal({pickle}, "bytes"), "read as bytes");
}

TEST_F(LmdbValuesTest, an_encoded_datum_is_an_image_with_a_label) {
  const LmdbValues& values = make({encoded_datum(kJpeg, 7)});
  ASSERT_EQ(values.schema().size(), 2u);
  EXPECT_TRUE(values.schema()[0].encoded);
  EXPECT_EQ(values.schema()[1].name, "label");
  EXPECT_EQ(parse(values, encoded_datum(kJpeg + "more", -2)), "");
  EXPECT_EQ(field(0), kJpeg + "more");
  EXPECT_EQ(record_.fields[1].scalar, -2);
  EXPECT_EQ(parse(values, datum(1, 2, 2, "abcd", 0)),
            "the Datum contains pixels, but others an encoded image");
}

TEST_F(LmdbValuesTest, an_image_without_the_flag_encoded_is_recognized_by_its_bytes) {
  EXPECT_TRUE(make({datum(0, 0, 0, kJpeg, 1)}).schema()[0].encoded);
}

TEST_F(LmdbValuesTest, pixels_of_a_datum_become_rgb) {
  const std::string pixels = "bBgGrR";  // two pixels, three planes
  const LmdbValues& values = make({datum(3, 1, 2, pixels, 0)});
  EXPECT_EQ(values.schema()[0].shape, (Shape{3, 1, 2}));
  EXPECT_EQ(parse(values, datum(3, 1, 2, pixels, 0)), "");
  EXPECT_EQ(field(0), "rRgGbB");
  EXPECT_EQ(parse(values, datum(3, 2, 1, pixels, 0)),
            "the Datum is of 3 x 2 x 1, but others of 3 x 1 x 2");
  parse(make({datum(3, 1, 2, pixels, 0)}, {}, false), datum(3, 1, 2, pixels, 0));
  EXPECT_EQ(field(0), pixels);
  parse(make({datum(1, 1, 2, "ab", 0), datum(1, 2, 2, "abcd", 0)}), datum(1, 2, 3, "abcdef", 0));
  EXPECT_EQ(values_->schema()[0].shape, (Shape{1, -1, 2}));
}

TEST_F(LmdbValuesTest, pixels_of_other_sizes_have_their_own_shape) {
  const LmdbValues& values = make({datum(1, 1, 2, "ab", 0), datum(1, 2, 1, "ab", 0)});
  EXPECT_EQ(values.schema()[0].shape, (Shape{1, -1, -1}));
  EXPECT_EQ(parse(values, datum(1, 2, 3, "abcdef", 0)), "");
  EXPECT_EQ(record_.fields[0].shape, (Shape{1, 2, 3}));
}

TEST_F(LmdbValuesTest, floats_of_a_datum_are_read_packed_or_not) {
  const std::vector<float> numbers = {1.5f, -2, 0.25f, 3};
  const std::string sizes = proto_number(1, 1) + proto_number(2, 2) + proto_number(3, 2);
  std::string single = sizes;
  for (const float number : numbers) single += "\x35" + raw_floats({number});
  const std::string packed = sizes + proto_bytes(6, raw_floats(numbers));
  const LmdbValues& values = make({single});
  ASSERT_EQ(values.schema().size(), 1u);
  EXPECT_EQ(values.schema()[0].dtype, DType::kFloat32);
  for (const std::string& value : {single, packed}) {
    EXPECT_EQ(parse(values, value), "");
    EXPECT_EQ(field(0), raw_floats(numbers));
  }
}

TEST_F(LmdbValuesTest, a_datum_that_contradicts_itself_is_bad) {
  const LmdbValues& values = make({datum(3, 1, 2, "bBgGrR", 0)});
  EXPECT_EQ(parse(values, datum(3, 1, 3, "bBgGrR", 0)),
            "the Datum has 6 bytes and 0 floats for 3 x 1 x 3");
  EXPECT_EQ(parse(values, datum(-1, -6, 1, "bBgGrR", 0)),
            "the Datum has 6 bytes and 0 floats for ? x ? x 1");
  EXPECT_EQ(parse(values, "\x22\x7F"), "the Datum is damaged: a length extends beyond the message");
  EXPECT_EQ(parse(values, proto_bytes(1, "x")), "field 1 is not part of a Datum");
}

TEST_F(LmdbValuesTest, a_label_is_read_without_its_image) {
  const std::string picture = kJpeg + std::string(100000, 'x');
  const LmdbValues& datums = make({encoded_datum(kJpeg, 1)});
  size_t read = 0;
  EXPECT_EQ(label(datums, encoded_datum(picture, 123), &read), "123");
  EXPECT_LT(read, 200u);
  EXPECT_EQ(label(datums, encoded_datum(picture, -5)), "-5");
  EXPECT_EQ(label(datums, encoded_datum("", 9)), "9");
  EXPECT_EQ(label(datums, proto_bytes(4, picture)), "0");  // protobuf's default value
  for (size_t cut = 1; cut < 120; ++cut) {
    const std::string whole = encoded_datum(kJpeg + std::string(60, 'x'), 7);
    (void)label(datums, whole.substr(0, std::min(cut, whole.size())));
  }
}

TEST_F(LmdbValuesTest, survives_every_truncation_and_changed_byte_of_a_value) {
  const std::string values[] = {datum(3, 2, 2, "abcdefghijkl", 300, ""), encoded_datum(kJpeg, 3)};
  for (const std::string& value : values) {
    make({value});
    const std::unique_ptr<LmdbValues> reader = std::move(values_);
    ASSERT_NE(reader->name(), "bytes");
    ASSERT_EQ(parse(*reader, value), "");
    const bool labeled = reader->schema().back().kind == FieldKind::kLabel;
    for (size_t at = 0; at < value.size(); ++at) {
      std::vector<std::string> damaged = {value.substr(0, at)};
      for (int bit = 0; bit < 8; ++bit) {
        damaged.push_back(value);
        damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ (1 << bit));
      }
      for (const std::string& bytes : damaged) {
        parse(*reader, bytes);
        if (labeled) (void)label(*reader, bytes);
        for (const std::string_view kind : {"", "datum"}) (void)refusal({bytes}, kind);
      }
    }
  }
}

}  // namespace
}  // namespace headrace
