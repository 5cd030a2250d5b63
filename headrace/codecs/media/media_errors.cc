// SPDX-License-Identifier: Apache-2.0
#include "headrace/codecs/media/media_errors.h"

#include <utility>

#include "headrace/codecs/media/media_program.h"

namespace headrace {
namespace {

const ErrorCode kDamagedVideo{
    "HR0368", ErrorKind::kData, "damaged video",
    "The decoder found a packet that makes no sense, or made a frame of which a part is guessed. "
    "Nothing of it is handed over, nor of frames that may have been made from it. Usually a "
    "download or a disk has damaged the file. Restore it, or let on_error= decide what happens to "
    "such records."};

const ErrorCode kEndedMediaProcess{
    "HR0369", ErrorKind::kData, "decoding a video ended or took too long",
    "Videos are decoded in a process of their own, so that a file that crashes a decoder or keeps "
    "it busy for ever costs one record. That is what this one did. Frames before and after it are "
    "not affected, and the next record gets a new process. If it happens to sound files, too, the "
    "machine may be out of memory (the kernel kills processes then), or the limit of seconds too "
    "small for it."};

const ErrorCode kNoMediaProcess{
    "HR0370", ErrorKind::kConfig, "nothing to decode videos with",
    "Videos are decoded by a small program beside the engine, headrace-av, which is linked with "
    "libavcodec. It is missing where libavcodec's headers were not there when Headrace was built "
    "(apt-get install libavcodec-dev, then install Headrace again), it does not start where "
    "libavcodec itself is missing (the message names Debian's package), and it refuses to work "
    "where the system does not let it give up its rights (seccomp); isolate=False does without "
    "that, for files that are trusted."};

const ErrorCode kUndecodedVideo{
    "HR0371", ErrorKind::kUnsupported, "kind of video that is not decoded",
    "The file is sound, and its frames are of a kind that is not delivered: with an alpha channel "
    "or a palette, of more than 12 bits, in colours without a matrix, of another size than the "
    "container says, or larger than the limit. Convert such files once (ffmpeg -i in.mov -pix_fmt "
    "yuv420p out.mp4)."};

std::string name_in(const media::Reply& reply) {
  std::string name;
  for (const char c : reply.name) {
    if (c < ' ' || c > '~') break;
    name += c;
  }
  return name;
}

constexpr const char* kLeaveOut = "write the file again, or leave such records out (on_error=)";

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
  return ended_media_process(std::string("the process that decodes it says what makes no sense (") +
                             what + "), and was ended");
}

Error failure_of(const media::Reply& reply) {
  const std::string name = name_in(reply);
  switch (reply.failure) {
    case media::Failure::kNotConfined:
      return no_media_process(
          "the system does not let headrace-av give up its rights (seccomp)",
          "allow seccomp in the container; or, for files that you trust, isolate=False");
    case media::Failure::kNoDecoder:
      return no_media_process("the libavcodec of this machine has no decoder `" + name + "`",
                              std::string("apt-get install ") + media_package());
    case media::Failure::kParameters:
      return damaged_media("the decoder cannot be opened with the parameters that the file has");
    case media::Failure::kDamage:
      return damaged_media("the decoder found damage");
    case media::Failure::kFormat:
      return undecoded_video("its frames are of a kind that is not delivered" +
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
