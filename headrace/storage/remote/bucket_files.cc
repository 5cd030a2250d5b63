// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <deque>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>

#include "headrace/base/mutex.h"
#include "headrace/storage/remote/list_tokens.h"
#include "headrace/storage/remote/object_list.h"
#include "headrace/storage/remote/remote_files.h"
#include "headrace/storage/storage_errors.h"

namespace headrace {
namespace {

constexpr size_t kListingsAtOnce = 256;
// With fewer known folders than this, their subfolders are listed first, so that there are enough
// to list concurrently.
constexpr size_t kEnoughFolders = 16;

// A page of a folder that earlier requests have cached: the whole listing or its first page.
std::optional<ListPage> known_page(const ListQuery& query) {
  if (query.flat || !query.next.empty()) return {};
  if (const auto all = known_objects().listing(query.folder)) {
    return ListPage{.entries = *all, .has_keys = true, .next = {}};
  }
  return known_objects().first_page(query.folder);
}

// A listing of everything below a folder: decides which requests to send, and which entries of each
// page to deliver.
class Listing {
 public:
  Listing(const Cloud& cloud, std::string root, const Storage::EachEntry& each)
      : cloud_(cloud), root_(std::move(root)), each_(each) {
    waiting_.push_back({.folder = root_});
  }

  bool is_there() const { return is_there_; }
  bool has_next() const { return goes_on_ && !waiting_.empty(); }
  bool goes_on() const { return goes_on_; }
  ListQuery next() {
    ListQuery out = std::move(waiting_.front());
    waiting_.pop_front();
    return out;
  }
  Result<void> take(const ListQuery& query, ListPage page) {
    is_there_ |= page.has_keys;
    return query.flat ? take_flat(query, std::move(page)) : take_level(query, std::move(page));
  }

 private:
  // While few folders are known, they are listed one level at a time; once there are enough, each
  // is listed with everything below it. If one page has many folders, they may hold few files each,
  // so one flat page is requested first to find out.
  Result<void> take_level(const ListQuery& query, ListPage page) {
    std::erase_if(page.entries, [&](const RemoteEntry& entry) {
      return entry.is_folder && entry.name == query.last_folder;
    });
    const bool is_whole = page.next.empty() && query.next.empty();
    if (Result<void> asked = request_rest(query, page); !asked) return asked;
    std::vector<std::string> folders;
    for (const RemoteEntry& entry : page.entries) {
      if (entry.is_folder) folders.push_back(entry.name + "/");
      hand_over(query, entry);
    }
    folders_known_ += folders.size();
    if (is_whole && folders.size() >= kEnoughFolders) {
      std::ranges::sort(folders);
      folders_.emplace(query.folder, std::move(folders));
      waiting_.push_back({.folder = query.folder, .flat = true});
      return {};
    }
    for (std::string& folder : folders) {
      folder.pop_back();
      waiting_.push_back(
          {.folder = query.folder + "/" + folder, .flat = folders_known_ >= kEnoughFolders});
    }
    return {};
  }

  Result<void> take_flat(const ListQuery& query, ListPage page) {
    // If the folders are listed together, this is the first page, or a page that begins after a
    // name.
    const auto together = folders_.find(query.folder);
    if (together == folders_.end()) {
      if (Result<void> asked = request_rest(query, page); !asked) return asked;
      for (const RemoteEntry& entry : page.entries) hand_over(query, entry);
      return {};
    }
    const std::vector<std::string>& folders = together->second;
    const bool is_first = query.next.empty(), in_order = is_in_order(page, query.after);
    const bool probes = is_first && query.after.empty() && query.until.empty();
    if (probes && !page.next.empty()) {
      const size_t whole = in_order && !page.entries.empty()
                               ? count_before(folders, name_of(page.entries.back()))
                               : 0;
      // The last folder in the page may continue in the next one.
      if (whole < 3 || !cloud_.lists_after(query.folder)) return list_each_folder(query, folders);
      return ask_together(query, std::move(page), folders, whole - 1);
    }
    if (!in_order && (!query.after.empty() || !query.until.empty())) {
      if (!is_first) return bad_listing("its keys are not in the order of their names");
      return list_each_folder(query, folders);  // the server does not support starting after a name
    }
    return take_part(query, std::move(page));
  }

  // Lists groups of `at_once` folders together, about one page per group.
  Result<void> ask_together(const ListQuery& query, ListPage page,
                            const std::vector<std::string>& folders, size_t at_once) {
    for (size_t i = at_once; i < folders.size(); i += at_once) {
      ListQuery part{.folder = query.folder, .flat = true, .after = folders[i]};
      if (i + at_once < folders.size()) part.until = folders[i + at_once];
      waiting_.push_back(std::move(part));
    }
    ListQuery first = query;
    first.until = folders[at_once];
    return take_part(first, std::move(page));
  }

  Result<void> take_part(const ListQuery& query, ListPage page) {
    const bool is_over = !query.until.empty() && !page.entries.empty() &&
                         name_of(page.entries.back()) >= query.until;
    if (is_over) page.next.clear();
    if (Result<void> asked = request_rest(query, page); !asked) return asked;
    for (const RemoteEntry& entry : page.entries) {
      // Files of the folder itself were delivered with its list of folders.
      const bool is_below = entry.is_folder || entry.name.find('/') != std::string::npos;
      if (is_below && (query.until.empty() || name_of(entry) < query.until)) {
        hand_over(query, entry);
      }
    }
    return {};
  }

  Result<void> list_each_folder(const ListQuery& query, const std::vector<std::string>& folders) {
    for (auto folder = std::ranges::lower_bound(folders, query.after);
         folder != folders.end() && (query.until.empty() || *folder < query.until); ++folder) {
      waiting_.push_back(
          {.folder = query.folder + "/" + folder->substr(0, folder->size() - 1), .flat = true});
    }
    return {};
  }

  Result<void> request_rest(const ListQuery& query, ListPage& page) {
    if (page.next.empty()) return {};
    if (Result<void> is_new = tokens_.add(query, page.next); !is_new) return is_new;
    ListQuery more = query;
    more.next = std::move(page.next);
    const auto folder =
        std::ranges::find_if(page.entries.rbegin(), page.entries.rend(), &RemoteEntry::is_folder);
    if (folder != page.entries.rend()) more.last_folder = folder->name;
    waiting_.push_front(std::move(more));
    return {};
  }

  void hand_over(const ListQuery& query, const RemoteEntry& entry) {
    const std::string path = query.folder + "/" + entry.name;
    const auto kind = entry.is_folder ? PathKind::kFolder : PathKind::kFile;
    goes_on_ = goes_on_ && each_(std::string_view(path).substr(root_.size() + 1), kind);
  }

  // The name as it is in the key.
  static std::string name_of(const RemoteEntry& entry) {
    return entry.is_folder ? entry.name + "/" : entry.name;
  }
  static bool is_in_order(const ListPage& page, std::string before) {
    for (const RemoteEntry& entry : page.entries) {
      std::string name = name_of(entry);
      if (name < before) return false;
      before = std::move(name);
    }
    return true;
  }
  // The number of folders up to this name.
  static size_t count_before(const std::vector<std::string>& folders, const std::string& name) {
    return static_cast<size_t>(std::ranges::upper_bound(folders, name) - folders.begin());
  }

  const Cloud& cloud_;
  const std::string root_;
  const Storage::EachEntry& each_;
  std::deque<ListQuery> waiting_;
  // For folders whose subfolders are listed together: the names of the subfolders, as in keys.
  std::map<std::string, std::vector<std::string>> folders_;
  size_t folders_known_ = 0;
  ListTokens tokens_;
  bool is_there_ = false, goes_on_ = true;
};

}  // namespace

Result<PathStatus> BucketFiles::list_below(const std::string& given, const EachEntry& each) const {
  const std::string root = without_slash(given);
  struct Arrivals {
    Mutex mutex;
    Condition changed;
    std::deque<std::pair<ListQuery, FetchResult>> pages GUARDED_BY(mutex);
  };
  const auto arrivals = std::make_shared<Arrivals>();  // shared: with requests in progress
  // Cancels the requests in progress if the listing ends early.
  struct Unneeded : std::stop_source {
    ~Unneeded() { (void)request_stop(); }
  } unneeded;
  Listing listing(cloud(), root, each);
  size_t under_way = 0;
  while (listing.goes_on() && (listing.has_next() || under_way > 0)) {
    while (listing.has_next() && under_way < kListingsAtOnce) {
      const ListQuery query = listing.next();
      if (std::optional<ListPage> known = known_page(query)) {
        if (Result<void> taken = listing.take(query, std::move(*known)); !taken) {
          return std::move(taken.error());
        }
        continue;
      }
      cloud().prepare(/*looks=*/false);
      Fetch fetch = new_listing(query);
      fetch.unneeded = unneeded.get_token();
      fetch.done = [arrivals, query](FetchResult got) {
        MutexLock lock(arrivals->mutex);
        arrivals->pages.emplace_back(query, std::move(got));
        arrivals->changed.notify_all();
      };
      ++under_way;
      RangeClient::of_process().submit(std::move(fetch));
    }
    if (under_way == 0) continue;
    std::deque<std::pair<ListQuery, FetchResult>> pages;
    {
      MutexLock lock(arrivals->mutex);
      while (arrivals->pages.empty()) arrivals->changed.wait(arrivals->mutex);
      pages.swap(arrivals->pages);
    }
    for (auto& [query, got] : pages) {
      --under_way;
      Result<ListPage> page = page_from(query, std::move(got));
      if (!page) return std::move(page.error());
      if (Result<void> taken = listing.take(query, std::move(*page)); !taken) {
        return std::move(taken.error());
      }
    }
  }
  if (!listing.is_there()) return storage_error(ENOENT, "list", given);
  return folder_status(root);
}

Result<bool> BucketFiles::store(const std::string& path, std::string content) const {
  if (!cloud().stores()) return read_only_error(path);
  cloud().prepare(/*looks=*/true);
  Fetch fetch = new_fetch(path);
  fetch.redirected = {};
  fetch.upload =
      std::make_shared<const std::string>(std::move(content));  // shared: by all attempts
  FetchResult got = RangeClient::of_process().fetch(std::move(fetch));
  known_objects().added(path);
  if (!got.result) return std::move(got.result.error());
  if (!got.found) return request_error(path, "the server answered 404", "check the bucket's name");
  return !got.changed;
}

}  // namespace headrace
