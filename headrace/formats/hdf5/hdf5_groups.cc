// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/hdf5/hdf5_groups.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "headrace/formats/hdf5/hdf5_file.h"
#include "headrace/formats/hdf5/hdf5_heap.h"

namespace headrace {
namespace {

constexpr size_t kMaxLinks = size_t{1} << 20;  // of a file
constexpr int kDeepestGroupTree = 32, kMaxSoftLinks = 16;
constexpr size_t kLongestPath = 4096;
constexpr uint64_t kLinkBytes = sizeof(Hdf5Link);

[[noreturn]] void too_many(const Hdf5File& file) {
  throw Exception(hdf5_too_large(file.file(), "the file has more than a million objects",
                                 "keep records as rows of one dataset"));
}

// --- Groups in old files: a B-tree of symbol nodes, names in a heap
// --------------------------------

class SymbolTable {
 public:
  SymbolTable(const Hdf5File& file, const Hdf5Message& message, std::vector<Hdf5Link>& out)
      : file_(file), out_(out) {
    Hdf5Cursor in = file.cursor(message.bytes);
    const uint64_t tree = in.address(), heap = in.address();
    if (!in.good() || tree == kHdf5Undefined || heap == kHdf5Undefined) {
      file.damaged(message.address, "a group without its table");
    }
    read_names(heap);
    visit(tree, -1);
  }

 private:
  void read_names(uint64_t address) {
    const uint64_t bytes = 8 + 2 * file_.length_bytes() + file_.address_bytes();
    const std::vector<uint8_t> header = file_.read(address, bytes, "a heap of names");
    if (std::memcmp(header.data(), "HEAP", 4) != 0 || header[4] != 0) {
      file_.damaged(address, "a heap of names does not begin with HEAP");
    }
    Hdf5Cursor in = file_.cursor(std::span(header).subspan(8));
    const uint64_t size = in.length();
    in.length();  // offset of the free list
    names_ = file_.read(in.address(), size, "a heap of names");
  }

  std::string name_at(uint64_t offset, uint64_t address) const {
    if (offset >= names_.size()) file_.damaged(address, "a name outside of its heap");
    const auto begin = names_.begin() + static_cast<ptrdiff_t>(offset);
    const auto end = std::find(begin, names_.end(), 0);
    if (end == names_.end()) file_.damaged(address, "a name without a terminating zero");
    file_.spend(kLinkBytes + static_cast<uint64_t>(end - begin), "the names of a group");
    return {begin, end};
  }

  void visit(uint64_t address, int level) {
    if (!seen_.insert(address).second)
      file_.damaged(address, "a group's table that refers to itself");
    const uint64_t head = 8 + 2 * file_.address_bytes();
    const std::vector<uint8_t> begin = file_.read(address, head, "a group's table");
    Hdf5Cursor in = file_.cursor(begin);
    const std::span<const uint8_t> signature = in.bytes(4);
    const uint8_t type = in.u8(), found_level = in.u8();
    const uint16_t count = in.u16();
    if (std::memcmp(signature.data(), "TREE", 4) != 0 || type != 0 ||
        found_level > kDeepestGroupTree || (level >= 0 && found_level != level)) {
      file_.damaged(address, "a group's table that is not a B-tree of names");
    }
    const uint64_t pair = file_.length_bytes() + file_.address_bytes();
    const std::vector<uint8_t> body =
        file_.read(address + head, count * pair + file_.length_bytes(), "a group's table");
    Hdf5Cursor children = file_.cursor(body);
    for (int i = 0; i < count; ++i) {
      children.length();  // the previous name
      const uint64_t child = children.address();
      if (child == kHdf5Undefined) file_.damaged(address, "a group's table with a missing child");
      if (found_level > 0) {
        visit(child, found_level - 1);
      } else {
        read_symbols(child);
      }
    }
  }

  void read_symbols(uint64_t address) {
    if (!seen_.insert(address).second)
      file_.damaged(address, "a group's table that refers to itself");
    const std::vector<uint8_t> head = file_.read(address, 8, "a group's names");
    Hdf5Cursor start = file_.cursor(head);
    const std::span<const uint8_t> signature = start.bytes(4);
    start.skip(2);
    const uint16_t count = start.u16();
    if (std::memcmp(signature.data(), "SNOD", 4) != 0) {
      file_.damaged(address, "a group's names do not begin with SNOD");
    }
    const uint64_t bytes = file_.length_bytes() + file_.address_bytes() + 24;
    const std::vector<uint8_t> body = file_.read(address + 8, count * bytes, "a group's names");
    Hdf5Cursor in = file_.cursor(body);
    for (int i = 0; i < count; ++i) {
      Hdf5Link link{.name = name_at(in.length(), address)};
      link.address = in.address();
      const uint32_t cached = in.u32();
      in.skip(4);
      const std::span<const uint8_t> scratch = in.bytes(16);
      if (cached == 2) {
        uint32_t offset = 0;
        std::memcpy(&offset, scratch.data(), sizeof offset);
        link.kind = Hdf5Link::Kind::kSoft;
        link.target = name_at(offset, address);
      }
      if (out_.size() >= kMaxLinks) too_many(file_);
      out_.push_back(std::move(link));
    }
  }

  const Hdf5File& file_;
  std::vector<Hdf5Link>& out_;
  std::vector<uint8_t> names_;
  std::unordered_set<uint64_t> seen_;
};

// --- Groups in newer files: one message per link
// ---------------------------------------------------

std::string text_of_bytes(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

Hdf5Link link_from(const Hdf5File& file, std::span<const uint8_t> bytes, uint64_t address) {
  Hdf5Cursor in = file.cursor(bytes);
  const uint8_t version = in.u8(), flags = in.u8();
  const uint8_t kind = flags & 0x08 ? in.u8() : 0;
  if (flags & 0x04) in.skip(8);  // its number in order of creation
  if (flags & 0x10) in.skip(1);  // the character set
  const uint64_t name_bytes = in.number(1 << (flags & 3));
  Hdf5Link link{.name = text_of_bytes(in.bytes(name_bytes))};
  if (kind == 0) {
    link.address = in.address();
  } else if (kind == 1) {
    link.kind = Hdf5Link::Kind::kSoft;
    link.target = text_of_bytes(in.bytes(in.u16()));
  } else {
    link.kind = Hdf5Link::Kind::kExternal;
    const std::span<const uint8_t> value = in.bytes(in.u16());
    for (uint8_t c : value.subspan(value.empty() ? 0 : 1)) {
      if (c == 0 && link.target.empty()) continue;
      link.target += c == 0 ? ':' : c >= ' ' && c < 127 ? static_cast<char>(c) : '?';
    }
    if (link.target.ends_with(':')) link.target.pop_back();
  }
  if (!in.good() || version != 1 || link.name.empty()) file.damaged(address, "a damaged link");
  return link;
}

void read_dense_links(const Hdf5File& file, const Hdf5Message& message,
                      std::vector<Hdf5Link>& out) {
  Hdf5Cursor in = file.cursor(message.bytes);
  const uint8_t version = in.u8(), flags = in.u8();
  if (flags & 1) in.skip(8);
  const uint64_t heap_address = in.address(), tree = in.address();
  if (!in.good() || version != 0) file.damaged(message.address, "a group without its links");
  if (heap_address == kHdf5Undefined || tree == kHdf5Undefined) return;
  Hdf5Heap heap(file, heap_address);
  static constexpr std::array<uint8_t, 1> kByName = {5};
  visit_hdf5_tree(file, tree, kByName, [&](uint8_t, std::span<const uint8_t> record) {
    if (out.size() >= kMaxLinks) too_many(file);
    out.push_back(link_from(file, heap.object(record.subspan(4)), heap_address));
    file.spend(kLinkBytes + out.back().name.size(), "the names of a group");
  });
}

}  // namespace

bool is_hdf5_group(const Hdf5Object& object) {
  return object.find(Hdf5MessageType::kSymbolTable) || object.find(Hdf5MessageType::kLinkInfo) ||
         object.find(Hdf5MessageType::kLink);
}

std::vector<Hdf5Link> hdf5_links(const Hdf5File& file, const Hdf5Object& object) {
  std::vector<Hdf5Link> out;
  for (const Hdf5Message& message : object.messages()) {
    if (message.type == Hdf5MessageType::kSymbolTable) SymbolTable(file, message, out);
    if (message.type == Hdf5MessageType::kLinkInfo) read_dense_links(file, message, out);
    if (message.type == Hdf5MessageType::kLink) {
      out.push_back(link_from(file, message.bytes, message.address));
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Hdf5Link& a, const Hdf5Link& b) { return a.name < b.name; });
  return out;
}

const std::vector<Hdf5Link>& Hdf5Directory::links_of(uint64_t address) {
  const auto known = groups_.find(address);
  if (known != groups_.end()) return known->second;
  return groups_[address] = hdf5_links(file_, Hdf5Object::read(file_, address));
}

Hdf5Directory::Listing Hdf5Directory::list() {
  Listing out;
  std::unordered_set<uint64_t> seen = {file_.root()};
  std::vector<Entry> groups = {{"", file_.root()}};  // a stack of groups not visited yet
  size_t links = 0;
  while (!groups.empty()) {
    const Entry group = std::move(groups.back());
    groups.pop_back();
    std::vector<Entry> deeper;
    for (const Hdf5Link& link : links_of(group.address)) {
      if (++links > kMaxLinks) too_many(file_);
      std::string path = group.path + "/" + link.name;
      file_.spend(path.size(), "the paths of its objects");
      if (link.kind == Hdf5Link::Kind::kExternal) {
        out.outside.push_back({path + " -> " + link.target, kHdf5Undefined});
      }
      if (link.kind != Hdf5Link::Kind::kHard || !seen.insert(link.address).second) continue;
      if (path.size() > kLongestPath)
        file_.damaged(group.address, "a path of more than 4,096 bytes");
      const Hdf5Object object = Hdf5Object::read(file_, link.address);
      if (object.find(Hdf5MessageType::kLayout) || object.find(Hdf5MessageType::kExternalFiles)) {
        out.datasets.push_back({std::move(path), link.address});
      } else if (is_hdf5_group(object)) {
        deeper.push_back({std::move(path), link.address});
      }
    }
    groups.insert(groups.end(), deeper.rbegin(), deeper.rend());
  }
  return out;
}

uint64_t Hdf5Directory::find(const std::string& path) {
  std::string rest = path;
  uint64_t address = file_.root();
  int soft_links = 0;
  while (true) {
    const size_t begin = rest.find_first_not_of('/');
    if (begin == std::string::npos) return address;
    const size_t end = std::min(rest.find('/', begin), rest.size());
    const std::string name = rest.substr(begin, end - begin);
    rest.erase(0, end);
    if (name == ".") continue;
    const std::vector<Hdf5Link>& links = links_of(address);
    const auto link = std::lower_bound(
        links.begin(), links.end(), name,
        [](const Hdf5Link& it, const std::string& wanted) { return it.name < wanted; });
    if (link == links.end() || link->name != name) return kHdf5Undefined;
    if (link->kind == Hdf5Link::Kind::kExternal) {
      throw Exception(
          hdf5_leads_outside(file_.file(), "an external link to " + link->target, path));
    }
    if (link->kind == Hdf5Link::Kind::kHard) {
      address = link->address;
      continue;
    }
    if (++soft_links > kMaxSoftLinks || rest.size() + link->target.size() > kLongestPath) {
      throw Exception(hdf5_damaged(file_.file(), -1, "cyclic soft links", path));
    }
    if (link->target.starts_with('/')) address = file_.root();
    rest = link->target + "/" + rest;
  }
}

}  // namespace headrace
