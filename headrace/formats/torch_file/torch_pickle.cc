// SPDX-License-Identifier: Apache-2.0
#include "headrace/formats/torch_file/torch_pickle.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "headrace/base/text.h"
#include "headrace/formats/arrays/array_errors.h"

namespace headrace {
namespace {

const ErrorCode kCallsCode{
    "HR1404", ErrorKind::kUnsupported, "unsupported object in a torch.save file",
    "A torch.save file is a pickle, which may call arbitrary functions. Headrace never calls any: "
    "it reads only dictionaries, lists and tuples of tensors, and rejects everything else. Save "
    "only tensors, or, if you trust the file, load it with torch and save its tensors as "
    "safetensors."};

enum class NodeKind : uint8_t {
  kMark,
  kOther,  // None, booleans, floats, bytes
  kInt,
  kText,
  kList,  // tuples too
  kDict,  // keys and values alternating
  kGlobal,
  kStorage,
  kTensor,
};

// Limits for names, which a few bytes of a pickle may repeat many times.
constexpr size_t kMaxAxes = 64, kMaxNameBytes = 1024, kMaxEntries = 100'000;

struct Node {
  NodeKind kind = NodeKind::kOther;
  int64_t integer = 0;
  std::string text = {};           // of text, globals ("torch.FloatStorage") and storages
  std::vector<size_t> items = {};  // indices of nodes
  TorchTensor tensor = {};
  std::optional<DType> dtype = {};  // of a storage's elements
};

std::optional<DType> dtype_named(std::string_view name) {
  struct Known {
    std::string_view storage, dtype;
    DType is;
  };
  static constexpr Known kKnown[] = {
      {"torch.ByteStorage", "torch.uint8", DType::kUInt8},
      {"torch.CharStorage", "torch.int8", DType::kInt8},
      {"torch.ShortStorage", "torch.int16", DType::kInt16},
      {"torch.IntStorage", "torch.int32", DType::kInt32},
      {"torch.LongStorage", "torch.int64", DType::kInt64},
      {"torch.HalfStorage", "torch.float16", DType::kFloat16},
      {"torch.BFloat16Storage", "torch.bfloat16", DType::kBFloat16},
      {"torch.FloatStorage", "torch.float32", DType::kFloat32},
      {"torch.DoubleStorage", "torch.float64", DType::kFloat64},
      {"torch.BoolStorage", "torch.bool", DType::kBool},
      {"", "torch.uint16", DType::kUInt16},
      {"", "torch.uint32", DType::kUInt32},
      {"", "torch.uint64", DType::kUInt64},
  };
  for (const Known& known : kKnown) {
    if (name == known.dtype || (!known.storage.empty() && name == known.storage)) return known.is;
  }
  return {};
}

bool is_harmless(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "torch._utils._rebuild_tensor_v2",
      "torch._utils._rebuild_tensor_v3",
      "torch._utils._rebuild_parameter",
      "collections.OrderedDict",
      "torch.Size",
      "torch.storage.UntypedStorage",
      "torch.storage._LegacyStorage",
  };
  return std::ranges::count(kNames, name) > 0 || dtype_named(name).has_value();
}

Error damaged_pickle(const std::string& path, const std::string& what, size_t at) {
  return damaged_array(path, "its pickle: " + what, static_cast<int64_t>(at));
}

// The bytes from which opcodes and their arguments are read. After an error, which is stored in
// `error`, all reads return zeros.
class PickleBytes {
 public:
  PickleBytes(std::span<const uint8_t> bytes, const std::string& path, std::optional<Error>& error)
      : bytes_(bytes), path_(path), error_(error) {}

  size_t at() const { return at_; }
  std::span<const uint8_t> take(uint64_t count) {
    if (count > bytes_.size() - at_) {
      fail("it ends early");
      at_ = bytes_.size();
      return {};
    }
    const auto out = bytes_.subspan(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return out;
  }
  uint64_t number(size_t count) {
    uint64_t out = 0;
    const auto bytes = take(count);
    if (!bytes.empty()) std::memcpy(&out, bytes.data(), bytes.size());
    return out;
  }
  std::string line() {
    const auto rest = bytes_.subspan(at_);
    const auto end = std::ranges::find(rest, '\n');
    if (end == rest.end()) {
      fail("a name without a terminator");
      return {};
    }
    const auto bytes = take(static_cast<uint64_t>(end - rest.begin()) + 1);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size() - 1};
  }

 private:
  void fail(const char* what) {
    if (!error_) error_ = damaged_pickle(path_, what, at_);
  }

  const std::span<const uint8_t> bytes_;
  const std::string& path_;
  std::optional<Error>& error_;
  size_t at_ = 0;
};

// A stack machine in which each node comes from one opcode: memory is proportional to the pickle.
class PickleReader {
 public:
  PickleReader(std::span<const uint8_t> bytes, const std::string& path)
      : path_(path), bytes_(bytes, path_, error_) {}

  Result<TorchContents> read() {
    while (!error_ && !stopped_) step();
    if (error_) return std::move(*error_);
    return contents_of(result_);
  }

 private:
  void step() {
    const size_t at = bytes_.at();
    const auto opcode = static_cast<uint8_t>(bytes_.number(1));
    switch (opcode) {
      case 0x80:  // PROTO
        bytes_.number(1);
        return;
      case 0x95:  // FRAME
        bytes_.number(8);
        return;
      case '(':
        return push({.kind = NodeKind::kMark});
      case '.':
        result_ = pop();
        stopped_ = true;
        return;
      case '0':
        pop();
        return;
      case 'N':
      case 0x88:
      case 0x89:
        return push({});
      case 'K':
        return push_integer(bytes_.number(1));
      case 'M':
        return push_integer(bytes_.number(2));
      case 'J':
        return push_integer(static_cast<int32_t>(bytes_.number(4)));
      case 0x8a:
        return push_long(bytes_.number(1));
      case 'G':
        bytes_.number(8);
        return push({});
      case 'X':
        return push_text(bytes_.number(4));
      case 0x8c:
        return push_text(bytes_.number(1));
      case 0x8d:
        return push_text(bytes_.number(8));
      case 'U':
      case 'C':
        return push_bytes(bytes_.number(1));
      case 'T':
      case 'B':
        return push_bytes(bytes_.number(4));
      case 0x8e:
        return push_bytes(bytes_.number(8));
      case ']':
      case ')':
        return push({.kind = NodeKind::kList});
      case '}':
        return push({.kind = NodeKind::kDict});
      case 't':
        return push({.kind = NodeKind::kList, .items = pop_to_mark()});
      case 0x85:
        return push_tuple(1);
      case 0x86:
        return push_tuple(2);
      case 0x87:
        return push_tuple(3);
      case 'q':
        return put(bytes_.number(1));
      case 'r':
        return put(bytes_.number(4));
      case 0x94:
        return put(memo_.size());
      case 'h':
        return get(bytes_.number(1));
      case 'j':
        return get(bytes_.number(4));
      case 'a':
        return add({pop()}, NodeKind::kList);
      case 'e':
        return add(pop_to_mark(), NodeKind::kList);
      case 's': {
        const size_t value = pop(), key = pop();
        return add({key, value}, NodeKind::kDict);
      }
      case 'u':
        return add(pop_to_mark(), NodeKind::kDict);
      case 'c': {
        const std::string module = bytes_.line(), name = bytes_.line();
        return push_global(module + "." + name);
      }
      case 0x93: {
        const size_t name = pop(), module = pop();
        if (error_) return;
        return push_global(nodes_[module].text + "." + nodes_[name].text);
      }
      case 'Q':
        return push_storage(pop());
      case 'R':
        return reduce();
      case 'b': {  // the state of a dictionary (a model's _metadata) is ignored
        pop();
        if (const size_t of = top(); !error_ && nodes_[of].kind != NodeKind::kDict) {
          fail(damaged_pickle(path_, "it sets the state of an object that takes none", at));
        }
        return;
      }
      default:
        return fail(unsupported_array(path_,
                                      "its pickle has an opcode " + std::to_string(opcode) +
                                          ", which torch.save does not write",
                                      kWayOut));
    }
  }

  static constexpr const char* kWayOut =
      "torch.save({\"image\": images, \"label\": labels}, path), or safetensors";

  Error damaged(const std::string& what) const { return damaged_pickle(path_, what, bytes_.at()); }
  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

  // --- The stack.

  void push(Node node) {
    if (error_) return;
    stack_.push_back(nodes_.size());
    nodes_.push_back(std::move(node));
  }
  void push_integer(uint64_t value) { push_integer(static_cast<int64_t>(value)); }
  void push_integer(int32_t value) { push_integer(int64_t{value}); }
  void push_integer(int64_t value) { push({.kind = NodeKind::kInt, .integer = value}); }
  void push_long(uint64_t count) {
    const auto bytes = bytes_.take(count);
    if (bytes.size() > 8) return push({});  // no size has this many digits
    int64_t value = 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), bytes.size());
    if (const int bits = 64 - 8 * int(bytes.size()); bits > 0 && bits < 64) {
      value = static_cast<int64_t>(static_cast<uint64_t>(value) << bits) >> bits;
    }
    push_integer(value);
  }
  void push_text(uint64_t count) {
    const auto bytes = bytes_.take(count);
    push({.kind = NodeKind::kText, .text = std::string(text_from_bytes(bytes))});
  }
  void push_bytes(uint64_t count) {
    bytes_.take(count);
    push({});
  }
  void push_tuple(size_t count) {
    std::vector<size_t> items(count);
    for (size_t i = count; i-- > 0;) items[i] = pop();
    push({.kind = NodeKind::kList, .items = std::move(items)});
  }
  void push_global(std::string name) {
    if (error_) return;
    if (!is_harmless(name)) {
      return fail({.code = &kCallsCode,
                   .what = "it names " + name.substr(0, 80) + ", which is not part of a tensor",
                   .where = Where{.file = path_, .offset = static_cast<int64_t>(bytes_.at())},
                   .hint = kWayOut});
    }
    push({.kind = NodeKind::kGlobal, .text = std::move(name)});
  }

  size_t top() {
    if (!stack_.empty() && !error_) return stack_.back();
    fail(damaged("an empty stack"));
    return 0;
  }
  size_t pop() {
    const size_t out = top();
    if (!error_) stack_.pop_back();
    return out;
  }
  std::vector<size_t> pop_to_mark() {
    std::vector<size_t> out;
    while (!error_) {
      const size_t item = pop();
      if (error_ || nodes_[item].kind == NodeKind::kMark) break;
      out.push_back(item);
    }
    std::ranges::reverse(out);
    return out;
  }
  void put(uint64_t slot) {
    if (const size_t of = top(); !error_) memo_[slot] = of;
  }
  void get(uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return fail(damaged("a reference to an unknown value"));
    if (!error_) stack_.push_back(found->second);
  }
  void add(const std::vector<size_t>& items, NodeKind kind) {
    const size_t to = top();
    if (error_) return;
    if (nodes_[to].kind != kind || (kind == NodeKind::kDict && items.size() % 2 != 0)) {
      return fail(damaged("it adds items to an object that is not a container"));
    }
    nodes_[to].items.insert(nodes_[to].items.end(), items.begin(), items.end());
  }

  // --- Interpretation.

  const Node* item(const Node& of, size_t i, NodeKind kind) const {
    if (i >= of.items.size()) return nullptr;
    const Node& node = nodes_[of.items[i]];
    return node.kind == kind ? &node : nullptr;
  }

  // ("storage", torch.FloatStorage, "0", "cpu", 12)
  void push_storage(size_t number) {
    if (error_) return;
    const Node& given = nodes_[number];
    const Node* const what = item(given, 0, NodeKind::kText);
    const Node* const type = item(given, 1, NodeKind::kGlobal);
    const Node* const key = item(given, 2, NodeKind::kText);
    if (given.kind != NodeKind::kList || !what || what->text != "storage" || !type || !key ||
        key->text.size() > kMaxNameBytes) {
      return fail(damaged("a persistent value that is not a storage"));
    }
    push({.kind = NodeKind::kStorage, .text = key->text, .dtype = dtype_named(type->text)});
  }

  void reduce() {
    const size_t arguments = pop(), function = pop();
    if (error_) return;
    const Node& given = nodes_[arguments];
    const std::string& name = nodes_[function].text;
    if (nodes_[function].kind != NodeKind::kGlobal || given.kind != NodeKind::kList) {
      return fail(damaged("a call of a non-function"));
    }
    if (name == "collections.OrderedDict" && given.items.empty()) {
      return push({.kind = NodeKind::kDict});
    }
    if (name == "torch.Size" && given.items.size() == 1) {
      return stack_.push_back(given.items[0]);
    }
    if (name == "torch._utils._rebuild_parameter" && item(given, 0, NodeKind::kTensor)) {
      return stack_.push_back(given.items[0]);
    }
    if (name.starts_with("torch._utils._rebuild_tensor_v")) return push_tensor(given, name);
    fail(unsupported_array(path_, "its pickle builds a " + name, kWayOut));
  }

  // (storage, offset, sizes, strides, requires_grad, hooks), of v3 (..., dtype, metadata)
  void push_tensor(const Node& given, const std::string& function) {
    const Node* const storage = item(given, 0, NodeKind::kStorage);
    const Node* const offset = item(given, 1, NodeKind::kInt);
    const Node* const sizes = item(given, 2, NodeKind::kList);
    const Node* const strides = item(given, 3, NodeKind::kList);
    if (!storage || !offset || !sizes || !strides) {
      return fail(damaged("a tensor without a storage, sizes and strides"));
    }
    if (std::max(sizes->items.size(), strides->items.size()) > kMaxAxes) {
      return fail(damaged("a tensor of too many dimensions"));
    }
    std::optional<DType> dtype = storage->dtype;
    if (function.ends_with("_v3")) {
      const Node* const named = item(given, 6, NodeKind::kGlobal);
      dtype = named ? dtype_named(named->text) : std::nullopt;
    }
    if (!dtype) {
      return fail(unsupported_array(path_, "a tensor with an unsupported dtype", kWayOut));
    }
    Node node{.kind = NodeKind::kTensor};
    node.tensor.storage = storage->text;
    node.tensor.dtype = *dtype;
    node.tensor.offset = offset->integer;
    for (const auto& [from, to] :
         {std::pair(sizes, &node.tensor.sizes), std::pair(strides, &node.tensor.strides)}) {
      for (size_t i = 0; i < from->items.size(); ++i) {
        const Node* const size = item(*from, i, NodeKind::kInt);
        if (!size) return fail(damaged("a size that is not a number"));
        to->push_back(size->integer);
      }
    }
    push(std::move(node));
  }

  Result<TorchContents> contents_of(size_t number) const {
    const Node& root = nodes_[number];
    if (root.items.size() > 2 * kMaxEntries) return damaged("too many entries");
    TorchContents out;
    const auto take = [&](std::string name, const Node& node) {
      if (node.kind != NodeKind::kTensor) return out.others.push_back(std::move(name));
      out.tensors.push_back(node.tensor);
      out.tensors.back().name = std::move(name);
    };
    if (root.kind == NodeKind::kTensor) {
      take({}, root);
    } else if (root.kind == NodeKind::kList) {
      for (size_t i = 0; i < root.items.size(); ++i) take(std::to_string(i), nodes_[root.items[i]]);
    } else if (root.kind == NodeKind::kDict) {
      for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
        const Node& key = nodes_[root.items[i]];
        if (key.kind != NodeKind::kText || key.text.size() > kMaxNameBytes) {
          return damaged("a name that is not text, or too long");
        }
        take(key.text, nodes_[root.items[i + 1]]);
      }
    }
    if (out.tensors.empty()) {
      return unsupported_array(
          path_, "it is not a tensor, nor a dictionary, list or tuple of tensors", kWayOut);
    }
    return out;
  }

  const std::string path_;
  std::optional<Error> error_;
  PickleBytes bytes_;
  size_t result_ = 0;
  bool stopped_ = false;
  std::vector<Node> nodes_;
  std::vector<size_t> stack_;        // indices of nodes
  std::map<uint64_t, size_t> memo_;  // likewise
};

}  // namespace

Result<TorchContents> read_torch_pickle(std::span<const uint8_t> bytes, const std::string& path) {
  return PickleReader(bytes, path).read();
}

}  // namespace headrace
