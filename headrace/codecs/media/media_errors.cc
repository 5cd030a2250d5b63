// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_errors.h"

#include <utility>

#include "headrace/codecs/media/media_program.h"

namespace headrace {
namespace {

const ErrorCode kDamagedVideo{
    "HR0368", ErrorKind::kData, "damaged video",
    "The decoder found an invalid packet, or concealed part of a frame. Neither it nor frames "
    "that may depend on it are delivered. Usually a download or a disk damaged the file. Restore "
    "it, or let on_error= decide what happens to such records."};

const ErrorCode kEndedMediaProcess{
    "HR0369", ErrorKind::kData, "video decoder crashed or timed out",
    "Videos are decoded in a separate process, so that a file that crashes a decoder or blocks it "
    "forever costs one record. That happened here. Earlier and later frames are not affected, and "
    "the next record gets a new process. If it also happens to intact files, the machine may be "
    "out of memory (the kernel then kills processes), or the time limit is too short for it."};

const ErrorCode kNoMediaProcess{
    "HR0370", ErrorKind::kConfig, "video decoder missing",
    "Videos are decoded by a separate program, headrace-av, which is linked with libavcodec. It "
    "is missing when libavcodec's headers were not installed when Headrace was built (apt-get "
    "install libavcodec-dev, then install Headrace again), does not start when libavcodec "
    "itself is missing (the message names Debian's package), and refuses to run where the "
    "system does not allow it to drop its privileges (seccomp); isolate=False runs without "
    "that, for trusted files."};

const ErrorCode kUndecodedVideo{
    "HR0371", ErrorKind::kUnsupported, "unsupported video codec",
    "The file is valid, but its frames are unsupported: with an alpha channel or a palette, of "
    "more than 12 bits, without a color matrix, of another size than the container states, or "
    "larger than the limit. Convert such files once (ffmpeg -i in.mov -pix_fmt yuv420p out.mp4)."};

std::string name_in(const media::Reply& reply) {
  std::string name;
  for (const char c : reply.name) {
    if (c < ' ' || c > '~') break;
    name += c;
  }
  return name;
}

constexpr const char* kLeaveOut = "re-encode the file, or leave such records out (on_error=)";

}  // namespace

Error damaged_media(std::string what) {
  return {.code = &kDamagedVideo, .what = std::move(what), .hint = kLeaveOut};
}

Error ended_media_process(std::string what) {
  return {.code = &kEndedMediaProcess,
          .what = std::move(what),
          .hint = "leave such records out (on_error=)"};
}

Error no_media_process(std::string what, std::string hint) {
  return {.code = &kNoMediaProcess, .what = std::move(what), .hint = std::move(hint)};
}

Error undecoded_video(std::string what, std::string hint) {
  return {.code = &kUndecodedVideo, .what = std::move(what), .hint = std::move(hint)};
}

Error senseless_reply(const char* what) {
  return ended_media_process(std::string("the decoding process sent an invalid message (") + what +
                             "), and was ended");
}

Error failure_of(const media::Reply& reply) {
  const std::string name = name_in(reply);
  switch (reply.failure) {
    case media::Failure::kNotConfined:
      return no_media_process(
          "the system does not let headrace-av drop its privileges (seccomp)",
          "allow seccomp in the container; or, for files that you trust, isolate=False");
    case media::Failure::kNoDecoder:
      return no_media_process("the libavcodec of this machine has no decoder `" + name + "`",
                              media_install());
    case media::Failure::kParameters:
      return damaged_media("the decoder cannot be opened with the file's parameters");
    case media::Failure::kDamage:
      return damaged_media("the decoder found damage");
    case media::Failure::kFormat:
      return undecoded_video("its frames have an unsupported pixel format" +
                                 (name.empty() ? std::string() : " (" + name + ")"),
                             "convert it: ffmpeg -i in.mov -pix_fmt yuv420p out.mp4");
    case media::Failure::kMemory:
      return undecoded_video("decoding it takes more memory than frames of its size need",
                             "leave such records out (on_error=)");
    case media::Failure::kNone:
    case media::Failure::kRequest:
      break;
  }
  return senseless_reply("failure");
}

}  // namespace headrace
