// SPDX-License-Identifier: Apache-2.0
// Files whose content is their name, after a delay: template://abc contains "abc".
#include <cerrno>
#include <cstring>

#include "headrace/base/registry.h"
#include "headrace/storage/async_storage.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

std::string_view content_of(std::string_view path) {
  return path.substr(scheme_of(path).size() + 3);
}

// Data that is never replaced needs no more; for others, use a hash of the ETag as the inode.
FileIdentity identity_of_path(std::string_view path) { return {.size = content_of(path).size()}; }

class TemplateStorage final : public AsyncStorage {
 public:
  Result<PathStatus> look_at(const std::string& path) const override {
    return PathStatus{.kind = PathKind::kFile, .identity = identity_of_path(path)};
  }
  Result<PathStatus> list(const std::string& path, const EachEntry&) const override {
    return storage_error(ENOTDIR, "list", path);
  }

 protected:
  void ask(const Request& request, std::function<void(Answer)> answer) const override {
    call_later(0.001, [request, answer = std::move(answer)] { answer(answer_to(request)); });
  }

 private:
  static Answer answer_to(const Request& request) {
    Answer out;
    const FileIdentity now = identity_of_path(request.piece.path);
    if (request.piece.known && *request.piece.known != now) {
      out.failure = changed_error(request.piece.path, *request.piece.known, now);
      return out;
    }
    const std::string_view content = content_of(request.piece.path);
    const std::span<uint8_t> room = room_for(request, content.size(), out);
    out.got = room.size();  // as many bytes as arrived; the rest is requested next
    if (room.empty()) return out;
    std::memcpy(room.data(), content.data() + request.piece.offset + request.begin, room.size());
    return out;
  }
};

const StorageRecord kTemplateStorage{.name = "template",
                                     .doc = "Files whose content is their name.",
                                     .example = "template://abc",
                                     .storage = []() -> const Storage& {
                                       static const auto* const storage = new TemplateStorage;
                                       return *storage;  // never destroyed: reads may be in
                                                         // progress
                                     }};
const Register<StorageRecord> registered_template_storage(kTemplateStorage);

}  // namespace
}  // namespace headrace
