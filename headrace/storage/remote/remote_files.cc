// SPDX-License-Identifier: Apache-2.0
#include "headrace/storage/remote/remote_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <unordered_set>
#include <utility>

#include "headrace/base/clock.h"
#include "headrace/storage/paths.h"
#include "headrace/storage/remote/list_tokens.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

constexpr size_t kHeadBytes =
    4096;  // bytes fetched when a file is inspected, since formats read its beginning next

// A request in progress for one end of an object.
struct RangeProbe {
  std::shared_ptr<std::string> bytes;  // shared: with the request
  std::unique_ptr<PendingFetch> fetch;
};

ScatterTarget places_of(std::string& text) {
  return std::span(reinterpret_cast<uint8_t*>(text.data()), text.size());
}

RangeProbe probe_range(Fetch fetch, const WantedRange& range) {
  RangeProbe out{.bytes = std::make_shared<std::string>(), .fetch = nullptr};
  fetch.range = range;
  fetch.looks = !range.from_end;
  fetch.max_bytes = Fetch::kMaxUnsizedObject;
  fetch.room = [bytes = out.bytes,
                most = range.bytes](const ObjectFacts& facts) -> Result<ScatterTarget> {
    bytes->resize(std::min<uint64_t>(most, facts.size.value_or(0)));
    return places_of(*bytes);
  };
  out.fetch = RangeClient::of_process().submitted(std::move(fetch));
  return out;
}

// Whether the path is known to be missing, from a listing or from a request in the last seconds.
bool is_known_to_be_missing(const std::string& path) {
  const auto look = known_objects().look(path);
  return look && look->status.kind == PathKind::kNothing;
}

}  // namespace

RemoteFiles::RemoteFiles(std::unique_ptr<const Cloud> cloud) : cloud_(std::move(cloud)) {}

RemoteFiles::~RemoteFiles() = default;

Fetch RemoteFiles::new_fetch(const std::string& path) const {
  Fetch out;
  out.path = path;
  out.server = cloud_->server(path);
  // Captures only `this`, so that the function needs no separate memory.
  out.request = [this](const std::string& path, const HttpCall& call) {
    return cloud_->object(path, call);
  };
  out.redirected = [this](const std::string& path, const HttpResponse& response,
                          const std::string& to) { return cloud_->redirected(path, response, to); };
  out.renew = [this](const std::string& path, const HttpResponse& response, std::string_view code) {
    return cloud_->renew(path, response, code);
  };
  return out;
}

Result<PathStatus> RemoteFiles::look(const std::string& given, bool both_ends) const {
  const std::string path = without_slash(given);
  if (given.find('\0') != std::string::npos) return storage_error(ENOENT, "look at", given);
  const auto known = known_objects().look(path);
  const bool has_ends = !both_ends || !known || known->head ||
                        known->status.kind != PathKind::kFile;  // not if it was only listed
  if (const auto& look = known; look && has_ends) {
    if (look->status.kind == PathKind::kNothing) return storage_error(ENOENT, "look at", given);
    return look->status.kind == PathKind::kFolder ? folder_status(path) : look->status;
  }
  const KnownObjects::Generation asked = KnownObjects::generation();
  cloud_->prepare(/*looks=*/true);
  if (cloud_->lists() && (given.ends_with('/') || cloud_->is_root(path))) {
    return look_at_folder(path, asked);
  }
  // A name without a suffix is probably a folder: the listing is requested concurrently.
  std::unique_ptr<PendingFetch> listing;
  if (cloud_->lists() && last_name(path).find('.') == std::string_view::npos &&
      !known_objects().first_page(path)) {
    listing = RangeClient::of_process().submitted(new_listing({.folder = path}));
  }
  const RangeProbe head =
      probe_range(new_fetch(path), {.first = 0, .bytes = both_ends ? kFirstBytes : kHeadBytes});
  std::optional<RangeProbe> tail;
  if (both_ends && cloud_->takes_ranges_from_end()) {
    tail = probe_range(new_fetch(path), {.bytes = kLastBytes, .from_end = true});
  }
  FetchResult got = head.fetch->wait();
  if (!got.result) return std::move(got.result.error());
  if (!got.found) {
    if (cloud_->lists()) return look_at_folder(path, asked, std::move(listing));
    known_objects().saw(path, {}, asked);
    return storage_error(ENOENT, "look at", given);
  }
  if (got.changed && got.facts.size != 0) {
    return request_error(path, "the server cannot return its first byte (416)");
  }
  KnownObjects::Look look;
  look.status.kind = PathKind::kFile;
  look.status.identity = identity_of_version(got.facts.version, got.facts.size.value_or(0));
  look.etag = got.facts.etag;
  look.head = head.bytes;
  // If this prefetch failed or is of another version, the reader requests the bytes again.
  if (const FetchResult end = tail ? tail->fetch->wait() : FetchResult{.found = false};
      end.result && end.found && !end.changed && !tail->bytes->empty() &&
      identity_of_version(end.facts.version, end.facts.size.value_or(0)) == look.status.identity) {
    look.tail = tail->bytes;
  }
  const PathStatus status = look.status;
  known_objects().saw(path, std::move(look), asked);
  return status;
}

Result<PathStatus> RemoteFiles::look_at_folder(const std::string& path,
                                               const KnownObjects::Generation& asked,
                                               std::unique_ptr<PendingFetch> listing) const {
  const double begun = now();
  Result<ListPage> page = page_of({.folder = path}, asked, std::move(listing));
  if (!page) return std::move(page.error());
  const bool is_there = page->has_keys;
  if (is_there && page->next.empty()) {
    Result<void> good = known_objects().saw_listing(path, std::move(page->entries), begun, asked);
    if (!good) return std::move(good.error());
  }
  KnownObjects::Look look;
  if (is_there) look.status = folder_status(path);
  known_objects().saw(path, look, asked);
  if (!is_there) return storage_error(ENOENT, "look at", path);
  return look.status;
}

Fetch RemoteFiles::new_listing(const ListQuery& query) const {
  Fetch out = new_fetch(query.folder);
  out.request = [this, query](const std::string&, const HttpCall& call) {
    return cloud_->listing(query, call);
  };
  out.redirected = {};
  return out;
}

Result<ListPage> RemoteFiles::page_from(const ListQuery& query, FetchResult got) const {
  if (!got.result) return std::move(got.result.error());
  if (!got.found) return storage_error(ENOENT, "list", query.folder);
  Result<ListPage> page = cloud_->parse(query, got);
  if (!page) page.error().where.file = query.folder;
  if (page) known_objects().saw_page(query.folder, page->entries, got.options);
  return page;
}

Result<ListPage> RemoteFiles::page_of(const ListQuery& query, const KnownObjects::Generation& asked,
                                      std::unique_ptr<PendingFetch> listing) const {
  if (!query.next.empty()) {
    return page_from(query, RangeClient::of_process().fetch(new_listing(query)));
  }
  if (std::optional<ListPage> first = known_objects().first_page(query.folder)) {
    return std::move(*first);
  }
  if (!listing) listing = RangeClient::of_process().submitted(new_listing(query));
  Result<ListPage> page = page_from(query, listing->wait());
  if (page && !page->next.empty()) known_objects().saw_first_page(query.folder, *page, asked);
  return page;
}

Result<PathStatus> RemoteFiles::list(const std::string& given, const EachEntry& each) const {
  const std::string path = without_slash(given);
  cloud_->prepare(/*looks=*/true);
  const auto hand_over = [&](const KnownObjects::Entries& entries) {
    return std::ranges::all_of(entries, [&](const RemoteEntry& entry) {
      return each(entry.name, entry.is_folder ? PathKind::kFolder : PathKind::kFile);
    });
  };
  if (const auto known = known_objects().listing(path)) {
    (void)hand_over(*known);
    return folder_status(path);
  }
  if (!cloud_->lists()) {
    Result<PathStatus> status = look_at(path);
    if (!status) return status;
    return storage_error(ENOTDIR, "list", given);
  }
  const KnownObjects::Generation asked = KnownObjects::generation();
  const double begun = now();
  KnownObjects::Entries all;
  ListQuery query{.folder = path};
  // A page may end with a folder with which the next page begins.
  std::unordered_set<std::string> folders;
  ListTokens tokens;
  bool is_there = false;  // an empty folder may have a key
  do {
    Result<ListPage> page = page_of(query, asked);
    if (!page) return std::move(page.error());
    if (Result<void> is_new = tokens.add(query, page->next); !is_new) {
      return std::move(is_new.error());
    }
    query.next = std::move(page->next);
    is_there |= page->has_keys;
    std::erase_if(page->entries, [&](const RemoteEntry& entry) {
      return entry.is_folder && !folders.insert(entry.name).second;
    });
    const bool goes_on = hand_over(page->entries);
    all.insert(all.end(), std::make_move_iterator(page->entries.begin()),
               std::make_move_iterator(page->entries.end()));
    if (!goes_on) return folder_status(path);
  } while (!query.next.empty());
  if (!is_there) return storage_error(ENOENT, "list", given);
  if (Result<void> good = known_objects().saw_listing(path, std::move(all), begun, asked); !good) {
    return std::move(good.error());
  }
  return folder_status(path);
}

std::optional<FileIdentity> RemoteFiles::version_of(const std::string& path) const {
  return known_objects().version_of(without_slash(path));
}

// Serves a read from the file's first or last bytes, which were fetched with its status: these are
// what formats read that inspect many files.
bool RemoteFiles::answer_from_known(const Request& request, const std::string& path,
                                    const std::function<void(Answer)>& answer) const {
  const FileIdentity& known = *request.piece.known;
  const uint64_t offset = request.piece.offset + request.begin;
  const size_t missing = request.bytes.size() - request.begin;
  const auto look = known_objects().look(path);
  if (!look || look->status.identity != known) return false;
  const uint64_t end = offset + missing;
  const char* bytes = nullptr;
  if (look->head && end <= look->head->size()) {
    bytes = look->head->data() + offset;
  } else if (look->tail && end <= known.size && offset >= known.size - look->tail->size()) {
    bytes = look->tail->data() + (offset - (known.size - look->tail->size()));
  } else {
    return false;
  }
  Answer out;
  const std::span<uint8_t> room = room_for(request, known.size, out);
  out.got = room.size();
  std::memcpy(room.data(), bytes, room.size());
  answer(std::move(out));
  return true;
}

void RemoteFiles::ask(const Request& request, std::function<void(Answer)> answer) const {
  const FilePiece& piece = request.piece;
  const uint64_t offset = piece.offset + request.begin;
  const uint64_t missing = request.sized ? request.size() - request.begin : 0;
  if (request.sized && missing == 0) {
    Answer none;
    none.size = piece.known ? piece.known->size : offset;
    return answer(std::move(none));
  }
  const std::string path = without_slash(piece.path);
  if (!piece.known && is_known_to_be_missing(path)) {
    Answer none;
    none.error_number = ENOENT;
    return answer(std::move(none));
  }
  const bool is_plain = request.sized && piece.known && request.places.empty();
  const uint64_t size = is_plain ? piece.known->size : 0;
  const bool is_near_end = offset + missing <= size && size - offset <= kLastBytes;
  if (is_plain && (offset + missing <= kFirstBytes || is_near_end) &&
      answer_from_known(request, path, answer)) {
    return;
  }
  // A small read near the beginning fetches the first kHeadBytes, since more such reads follow.
  const bool takes_head = is_plain && offset + missing <= std::min<uint64_t>(kHeadBytes, size);
  try {
    cloud_->prepare(/*looks=*/false);
  } catch (const Exception& expired) {
    Answer none;
    none.failure = expired.error();
    return answer(std::move(none));
  } catch (const std::exception& failed) {
    Answer none;
    none.failure = request_error(path, std::string("no credentials: ") + failed.what());
    return answer(std::move(none));
  }
  Fetch fetch = new_fetch(path);
  fetch.max_bytes = std::min(request.max_bytes, Fetch::kMaxUnsizedObject);
  fetch.unneeded = request.unneeded;
  fetch.range = {.first = offset, .bytes = request.sized ? missing : WantedRange::kToTheEnd};
  if (takes_head) {
    fetch.range = {.first = 0, .bytes = std::min<uint64_t>(kHeadBytes, piece.known->size)};
  }
  if (piece.known) fetch.if_match = known_objects().etag_of(*piece.known);
  auto out = std::make_shared<Answer>();  // shared: std::function must be copyable
  auto head = std::make_shared<std::string>();
  fetch.room = [request, out, head, takes_head,
                offset](const ObjectFacts& facts) -> Result<ScatterTarget> {
    const FileIdentity now = identity_of_version(facts.version, facts.size.value_or(0));
    const auto& known = request.piece.known;
    if (known && *known != now) return changed_error(request.piece.path, *known, now);
    if (!request.sized) out->identity = now;
    if (takes_head) {
      head->resize(std::min<uint64_t>(kHeadBytes, now.size));
      return places_of(*head);
    }
    if (!request.places.empty()) {
      out->size = now.size;
      return request.places.part(request.begin, now.size - std::min(now.size, offset));
    }
    const std::span<uint8_t> room = room_for(request, now.size, *out);
    if (!out->failure) return std::move(out->failure.error());
    if (!request.sized && now.size > request.max_bytes) {
      return above_cap_error(request.piece.path, now.size, request.max_bytes);
    }
    return ScatterTarget(room);
  };
  fetch.done = [request, path, out, head, takes_head, offset, asked = KnownObjects::generation(),
                answer = std::move(answer)](FetchResult got) {
    Answer& end = *out;
    const auto& known = request.piece.known;
    end.got = got.got;
    if (!got.result) {
      end.failure = std::move(got.result);
      if (end.failure.error().code->id == "HR0208") known_objects().forget(path);
    } else if (!got.found) {
      end.error_number = ENOENT;
      known_objects().forget(path);
    } else if (got.changed) {
      const uint64_t size = got.facts.size.value_or(0);
      known_objects().forget(path);
      end.got = 0;
      end.size = size;  // the object ends before the range; AsyncStorage reports that
      if (!got.facts.size || size > offset || (known && known->size != size)) {
        end.failure =
            changed_error(request.piece.path, known.value_or(FileIdentity{}), {.size = size});
      }
    } else if (takes_head) {
      const std::span<uint8_t> room = room_for(request, known->size, end);
      std::memcpy(room.data(), head->data() + offset, room.size());
      end.got = room.size();
      known_objects().saw_head(path, *known, head, asked);
    } else if (end.identity) {
      known_objects().saw_version(path, *end.identity, asked);
    }
    answer(std::move(end));
  };
  RangeClient::of_process().submit(std::move(fetch));
}

}  // namespace headrace
