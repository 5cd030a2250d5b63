// SPDX-License-Identifier: Apache-2.0
#include "headrace/finish/decode_choice.h"

#include <algorithm>

#include "headrace/base/error.h"

namespace headrace {
namespace {

// Minimum fraction of the sampled pictures that the GPU must be able to decode. Decoding one on a
// GPU still takes a sixth of the CPU time of decoding it on the CPU, at any number of threads
// (docs/guide/gpu.md), and takes GPU time from the model, so it is not worth it for a few pictures.
constexpr double kEnough = 0.9;

const ErrorCode kNothingToDecode{
    "HR0717", ErrorKind::kConfig, "nothing to decode on a device",
    "With decode=\"device\", the device that batches are copied to decodes baseline JPEGs that "
    "have a row index (headrace index, index=\"auto\", or a dense pack), and does one resize and "
    "the final transforms as with finish=\"device\". Other images of the same batch are decoded by "
    "threads. This requires encoded images, a field that the device finishes, and strict=False, "
    "because strict=True inspects the whole file. decode=\"auto\" decodes on the CPU instead."};

// Why no picture can be decoded on the device; empty if they can.
std::string obstacle(const DecodeInputs& question) {
  if (question.finish == FinishUse::kHost) return "finish=\"cpu\" requires finished rows";
  if (!question.encoded) return "the source has no encoded images";
  if (question.strict) return "strict=True inspects the whole file";
  return {};
}

DecodeChoice on_cpu(const DecodeInputs& question, const std::string& why) {
  if (question.use == DecodeUse::kDevice) {
    raise(kNothingToDecode, why, "use decode=\"auto\", or remove the obstacle");
  }
  return {false, "cpu: " + why};
}

}  // namespace

DecodeChoice choose_decode(const DecodeInputs& question) {
  if (question.use == DecodeUse::kCpu) return {false, "cpu"};
  if (!question.device) return {false, "cpu: batches stay on the host"};
  if (const std::string why = obstacle(question); !why.empty()) return on_cpu(question, why);
  if (question.use == DecodeUse::kAuto && question.device->backend() != "cuda") {
    return {false, "cpu: " + question.device->name() + " is not a GPU"};
  }
  return {true, "device: " + question.device->name()};
}

DecodeChoice choose_decode(const DecodeInputs& question, const FinishChoice& finish) {
  DecodeChoice choice = choose_decode(question);
  if (!choice.on_device || std::ranges::count(finish.decodable, true)) return choice;
  if (finish.any()) {
    return on_cpu(question, "only clips or masks are finished there, and threads decode these");
  }
  const size_t reason = std::min(finish.text.find(':'), finish.text.size());
  return on_cpu(question, "images are finished on the CPU" + finish.text.substr(reason));
}

DecodeChoice choose_decode(const DecodeChoice& chosen, const DecodedShare& tried,
                           const std::string& index) {
  if (double(tried.on_device) >= kEnough * double(tried.pictures)) return chosen;
  return {false, "cpu: " + tried.text(index)};
}

}  // namespace headrace
