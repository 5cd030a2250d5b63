// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/lmdb/lmdb_records.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "headrace/base/text.h"
#include "headrace/base/utf8.h"
#include "headrace/formats/lmdb/lmdb_pages.h"
#include "headrace/sources/readable_text.h"

namespace headrace {
namespace {

const ErrorCode kBadPage{
    "HR0482", ErrorKind::kData, "damaged page in an LMDB environment",
    "A page, or an entry of one, contradicts itself or the rest of the file: a page number outside "
    "the file, a page reached twice, a value longer than its space. All data that depends on it is "
    "one bad record, and on_error decides what happens; everything else is read. Copy the "
    "environment again, or rewrite it with mdb_copy -c if LMDB itself can still read it."};

const ErrorCode kNoDatabase{
    "HR0483", ErrorKind::kConfig, "LMDB database not found",
    "An environment contains one unnamed database and any number of named ones. database= selects "
    "a named one; without it the unnamed one is read, or the only named one if nothing else "
    "exists."};

constexpr size_t kMaxNames = 1000;

// Metadata entries that dataset writers add to their records: the count, a list of keys.
bool is_metadata_key(std::string_view key) {
  static constexpr std::array<std::string_view, 6> kKeys = {
      "__keys__", "__len__", "length", "num-samples", "num_samples", "__meta__"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

bool is_record(const LmdbNode& node) {
  return !node.database && !is_metadata_key(text_from_bytes(node.key));
}

struct NamedDatabase {
  std::string name;
  std::vector<uint8_t> tree;
  uint64_t offset = 0;
};

// Named databases among the entries of the main one.
class Databases : public LmdbVisitor {
 public:
  void node(const LmdbNode& node) override {
    if (!node.database) return;
    ++count;
    if (names.size() == kMaxNames && text_from_bytes(node.key) != wanted) return;
    names.push_back({std::string(text_from_bytes(node.key)),
                     {node.value.begin(), node.value.end()},
                     node.offset});
  }
  void bad(uint64_t, const std::string&) override {}

  std::string_view wanted;
  std::vector<NamedDatabase> names;
  int64_t count = 0;
};

class Records final : public Databases {
 public:
  using Passed = std::function<void(uint64_t)>;
  Records(const File& file, uint64_t page_bytes, ContainerIndex& out, const Passed& passed)
      : file_(file), page_bytes_(page_bytes), out_(out), passed_(passed) {}

  void begin(const LmdbTree& tree) { entries_ = std::max<uint64_t>(tree.entries, 1); }
  void node(const LmdbNode& node) override {
    ++seen_;
    if (node.database) {
      Databases::node(node);
    } else if (!is_record(node)) {
      ++out_.tallies["left out: " + std::string(text_from_bytes(node.key))];
    } else if (node.overflow_page != 0) {
      out_.records.add(node.overflow_page * page_bytes_, kLmdbPageHeader + node.value_bytes);
    } else {
      out_.records.add(node.offset, LmdbNode::kHeaderBytes + node.key.size() + node.value.size());
    }
  }
  void bad(uint64_t offset, const std::string& what) override {
    ++bad_;
    out_.damage.push_back({.record = out_.records.size(),
                           .offset = offset,
                           .code = std::string(kBadPage.id),
                           .what = what,
                           .hint = {}});
    out_.records.add(offset, std::min(page_bytes_, file_.size() - offset));
  }
  // Progress cannot be measured in bytes, because pages are scattered over the file.
  void leaf(uint64_t) override {
    const double share = std::min(1.0, static_cast<double>(seen_) / static_cast<double>(entries_));
    passed_(static_cast<uint64_t>(share * static_cast<double>(file_.size())));
  }
  uint64_t seen() const { return seen_; }
  bool any_bad() const { return bad_ > 0; }

 private:
  const File& file_;
  uint64_t page_bytes_;
  ContainerIndex& out_;
  const Passed& passed_;
  uint64_t entries_ = 1, seen_ = 0;
  int64_t bad_ = 0;
};

Error no_database(const File& file, std::string what, const Databases& there) {
  std::vector<std::string> names;
  for (const NamedDatabase& each : there.names)
    names.push_back(shown_lmdb_key(bytes_from_text(each.name), false));
  return {.code = &kNoDatabase,
          .what = std::move(what),
          .where = Where{.file = file.path()},
          .hint = names.empty() ? "omit database="
                                : "select one of them with database=: " + quoted_list(names, 10)};
}

Result<LmdbTree> named_tree(const File& file, const LmdbEnvironment& environment,
                            const NamedDatabase& named) {
  return lmdb_tree_from(named.tree, environment, file, named.offset);
}

// Both the scan and the key table use this walk of the same database, so that they count alike.
class DatabaseWalk {
 public:
  DatabaseWalk(const File& file, const LmdbEnvironment& environment, const std::string& database)
      : file_(file), environment_(environment), database_(database), walker_(file, environment) {}

  // `begin` gets the tree before its entries are visited.
  Result<void> run(Databases& visitor, const std::function<void(const LmdbTree&)>& begin) {
    if (!database_.empty()) return run_named(visitor, begin);
    tree_ = environment_.main;
    if (Result<void> walked = walk(visitor, begin); !walked) return walked;
    if (visitor.names.empty() || static_cast<uint64_t>(visitor.count) != tree_.entries) return {};
    if (visitor.names.size() > 1) {
      return no_database(file_,
                         "the environment contains " + count_text(visitor.count, "named database"),
                         visitor);
    }
    const NamedDatabase only = visitor.names[0];
    return enter(only, visitor, begin);
  }
  const LmdbTree& tree() const { return tree_; }

 private:
  Result<void> run_named(Databases& visitor, const std::function<void(const LmdbTree&)>& begin) {
    Databases there;
    there.wanted = database_;
    if (Result<void> walked = walker_.walk(environment_.main, there); !walked) return walked;
    for (const NamedDatabase& each : there.names) {
      if (each.name == database_) return enter(each, visitor, begin);
    }
    return no_database(file_, "there is no database \"" + database_ + "\" in the environment",
                       there);
  }
  Result<void> enter(const NamedDatabase& named, Databases& visitor,
                     const std::function<void(const LmdbTree&)>& begin) {
    const Result<LmdbTree> tree = named_tree(file_, environment_, named);
    if (!tree) return tree.error();
    tree_ = *tree;
    return walk(visitor, begin);
  }
  Result<void> walk(Databases& visitor, const std::function<void(const LmdbTree&)>& begin) {
    if ((tree_.flags & LmdbTree::kDupSort) != 0) {
      return lmdb_not_supported(file_, "the database has several values per key (dupsort)",
                                "rewrite it with one value per key");
    }
    begin(tree_);
    return walker_.walk(tree_, visitor);
  }

  const File& file_;
  const LmdbEnvironment& environment_;
  const std::string& database_;
  LmdbWalker walker_;
  LmdbTree tree_;
};

}  // namespace

// Where the leaf pages of one environment are, and the number of the first record in each.
struct LmdbLeaves final : public Databases {
  void leaf(uint64_t page) override {
    pages.push_back(page);
    firsts.push_back(records);
  }
  void node(const LmdbNode& node) override {
    if (node.database) Databases::node(node);
    records += is_record(node);
  }
  void bad(uint64_t, const std::string&) override { ++records; }

  std::vector<uint64_t> pages;
  std::vector<int64_t> firsts;
  int64_t records = 0;
  uint64_t page_bytes = 0;
};

Result<void> scan_lmdb(const File& file, const LmdbOptions& options, ContainerIndex& out,
                       const std::function<void(uint64_t)>& passed) {
  const Result<LmdbEnvironment> environment = read_lmdb_environment(file, options.recover);
  if (!environment) return environment.error();
  Records records(file, environment->page_bytes, out, passed);
  DatabaseWalk walk(file, *environment, options.database);
  uint64_t before = 0, expected = 0;
  const auto begin = [&](const LmdbTree& tree) {
    records.begin(tree);
    before = records.seen();
    expected = tree.entries;
  };
  if (Result<void> walked = walk.run(records, begin); !walked) return walked;
  if (!records.any_bad() && records.seen() - before != expected) {
    records.bad(0, "the database declares " + with_commas(static_cast<int64_t>(expected)) +
                       " entries, but its pages have " +
                       with_commas(static_cast<int64_t>(records.seen() - before)));
  }
  if (records.count > 0 && options.database.empty() && out.records.size() > 0 && before == 0) {
    out.tallies["named databases"] += records.count;
  }
  if ((walk.tree().flags & LmdbTree::kIntegerKey) != 0) ++out.tallies["integer keys"];
  if (environment->recovered) ++out.tallies["recovered"];
  return {};
}

Error bad_lmdb_page(std::string what) {
  return {.code = &kBadPage, .what = std::move(what), .where = Where{.offset = 0}};
}

std::string shown_lmdb_key(std::span<const uint8_t> key, bool integers) {
  if (integers && (key.size() == 4 || key.size() == 8)) {
    uint64_t number = 0;
    std::memcpy(&number, key.data(), key.size());
    return std::to_string(number);
  }
  const auto visible = [](uint8_t byte) { return byte >= 0x20 && byte != 0x7F; };
  if (std::ranges::all_of(key, visible) && is_utf8(key)) return std::string(text_from_bytes(key));
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "0x";
  for (const uint8_t byte : key) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

LmdbKeys::LmdbKeys(LmdbOptions options, size_t files)
    : options_(std::move(options)), leaves_(files) {}

LmdbKeys::~LmdbKeys() = default;

std::optional<std::string> LmdbKeys::key(const FileSet& files, size_t file, int64_t record,
                                         bool integers) const {
  const LmdbLeaves* const leaves = leaves_of(files, file);
  if (!leaves) return {};
  const auto above = std::ranges::upper_bound(leaves->firsts, record);
  if (above == leaves->firsts.begin()) return {};
  const auto number = static_cast<size_t>(above - leaves->firsts.begin()) - 1;
  int64_t left = record - leaves->firsts[number];
  std::vector<uint8_t> page(leaves->page_bytes);
  if (!files.read(file, leaves->pages[number] * leaves->page_bytes, page)) return {};
  const LmdbLeaf leaf(page, leaves->pages[number]);
  for (int i = 0; i < leaf.count(); ++i) {
    LmdbNode node;
    const bool counts = !leaf.node(i, node).empty() || is_record(node);
    if (counts && left-- == 0) return shown_lmdb_key(node.key, integers);
  }
  return {};
}

// Null if the environment has changed since.
const LmdbLeaves* LmdbKeys::leaves_of(const FileSet& files, size_t file) const {
  MutexLock lock(mutex_);
  std::unique_ptr<LmdbLeaves>& leaves = leaves_[file];
  if (leaves) return leaves.get();
  auto made = std::make_unique<LmdbLeaves>();
  const Result<File> opened = File::open(files.path(file));
  if (!opened) return nullptr;
  const Result<LmdbEnvironment> environment = read_lmdb_environment(*opened, options_.recover);
  if (!environment) return nullptr;
  made->page_bytes = environment->page_bytes;
  DatabaseWalk walk(*opened, *environment, options_.database);
  if (!walk.run(*made, [](const LmdbTree&) {})) return nullptr;
  leaves = std::move(made);
  return leaves.get();
}

}  // namespace headrace
