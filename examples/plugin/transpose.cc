// SPDX-License-Identifier: Apache-2.0
// A plug-in in C++: RandomTranspose swaps the axes of a record's images, masks, boxes and
// keypoints.
//
//     g++ -std=c++17 -O2 -shared -fPIC transpose.cc -o libtranspose.so
//         -I"$(python -c 'import headrace; print(headrace.include_dir())')"
#include <headrace/plugin.hpp>

namespace hp = headrace::plugin;

namespace {

class RandomTranspose {
 public:
  static constexpr const char* name = "RandomTranspose";
  static constexpr const char* help =
      "Swaps the axes of a record's images with probability p, of all of them or none.\n\n"
      "Images and masks, any dtype; float32 boxes (xyxy) and keypoints, uint8 planes.";
  static constexpr uint32_t flags = HEADRACE_MOVES | HEADRACE_RANDOM;
  static constexpr uint32_t kinds =
      HEADRACE_IMAGE | HEADRACE_MASK | HEADRACE_BOXES | HEADRACE_KEYPOINTS | HEADRACE_MASKS;

  static std::vector<hp::Param> params() {
    return {hp::number("p", "Probability of swapping the axes of a record.", 0.5).range(0, 1)};
  }
  explicit RandomTranspose(const hp::Arguments& arguments) : p_(arguments.number("p")) {}

  // The output shape of images and masks. Without a record, for planning: the size is unknown,
  // unless p is 0 or 1 or both sizes are equal.
  void shape(hp::Record* record, const hp::Field& in, hp::Shape& out) const {
    const int64_t height = in.extent(0), width = in.extent(1);
    if (!record && p_ > 0 && p_ < 1 && height != width) {
      out[0] = out[1] = -1;
    } else if (record ? record->coin(p_) : p_ >= 1) {
      out[0] = width;
      out[1] = height;
    }
  }

  // Draws the same coin for every field of the record, and as shape() did.
  void run(hp::Record& record, const hp::Field& in, hp::Field& out) const {
    const bool swaps = record.coin(p_);
    switch (in.kind()) {
      case HEADRACE_IMAGE:
      case HEADRACE_MASK:
        return run_image(swaps, in, out);
      case HEADRACE_MASKS:
        return run_planes(swaps, in, out);
      case HEADRACE_BOXES:
        if (in.box_format() != "xyxy") throw hp::BadRecord("boxes are xyxy here");
        return run_points(swaps, 2, in, out);
      default:
        return run_points(swaps, in.extent(in.axes() - 1), in, out);
    }
  }

 private:
  static void run_image(bool swaps, const hp::Field& in, hp::Field& out) {
    switch (in.dtype().bits) {  // samples are moved, whatever they mean
      case 8:
        return copy(swaps, in.samples<uint8_t>(), out.samples<uint8_t>());
      case 16:
        return copy(swaps, in.samples<uint16_t>(), out.samples<uint16_t>());
      default:
        return copy(swaps, in.samples<uint32_t>(), out.samples<uint32_t>());
    }
  }

  template <class Sample>
  static void copy(bool swaps, hp::Image<const Sample> from, hp::Image<Sample> to) {
    for (int64_t c = 0; c < to.channels; ++c) {
      for (int64_t y = 0; y < to.height; ++y) {
        for (int64_t x = 0; x < to.width; ++x) to(y, x, c) = swaps ? from(x, y, c) : from(y, x, c);
      }
    }
  }

  static void run_planes(bool swaps, const hp::Field& in, hp::Field& out) {
    const auto from = in.numbers<uint8_t>();
    const auto to = out.numbers<uint8_t>();
    const int64_t height = out.extent(out.axes() - 2), width = out.extent(out.axes() - 1);
    for (int64_t i = 0; i < int64_t(to.size); ++i) {
      const int64_t plane = i / (height * width), y = i / width % height, x = i % width;
      to[size_t(i)] = from[size_t(swaps ? (plane * width + x) * height + y : i)];
    }
  }

  // x and y are the first two of each group of `step` numbers.
  static void run_points(bool swaps, int64_t step, const hp::Field& in, hp::Field& out) {
    const auto from = in.numbers<float>();
    const auto to = out.numbers<float>();
    for (size_t i = 0; i < from.size; ++i) {
      const size_t at = i % size_t(step);
      to[i] = from[swaps && at < 2 ? i - at + (1 - at) : i];
    }
  }

  const double p_;
};

}  // namespace

HEADRACE_PLUGIN("transpose", "1.0", RandomTranspose)
