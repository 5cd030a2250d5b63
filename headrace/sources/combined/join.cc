// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "headrace/sources/combined/combined.h"
#include "headrace/sources/combined/reads_in_time.h"
#include "headrace/sources/field_kinds.h"
#include "headrace/sources/fingerprint.h"
#include "headrace/sources/labeled_files.h"
#include "headrace/sources/readable_text.h"
#include "headrace/sources/view.h"

namespace headrace {
namespace {

const ErrorCode kBadJoin{
    "HR0498", ErrorKind::kConfig, "invalid join",
    "A join pairs records with the same key: with on=\"key\", their names below the source's "
    "folder, without suffix; with on=\"position\", the same number, where both sources need "
    "equally many records; with on=FIELD, the values of an integer field that both have. Each "
    "value may occur once in the right source, and no other field may be in both: "
    "rename={\"label\": \"speaker\"} renames a field of the right source."};

// "data/a/1.jpg" in "data/" -> "a/1".
std::string name_of_key(std::string_view key, std::string_view root) {
  if (!root.empty() && key.starts_with(root)) {
    key.remove_prefix(root.size());
    while (key.starts_with('/')) key.remove_prefix(1);
  }
  const size_t slash = key.rfind('/'), dot = key.rfind('.');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  if (dot != std::string_view::npos && dot > base) key = key.substr(0, dot);
  return std::string(key);
}

// The key of each record, as text.
std::vector<std::string> values_of(const Source& source, const std::string& on, const char* which) {
  std::vector<std::string> out;
  out.reserve(static_cast<size_t>(source.size()));
  if (on == "key") {
    const std::string root = source.root();
    for (int64_t i = 0; i < source.size(); ++i) out.push_back(name_of_key(source.key(i), root));
    return out;
  }
  const std::vector<int64_t> column = source.integer_column(on);
  if (static_cast<int64_t>(column.size()) != source.size()) {
    raise(kBadJoin, std::string("the ") + which + " source has no integer field '" + on + "'",
          "on=\"key\", or an integer field of both");
  }
  for (const int64_t value : column) out.push_back(std::to_string(value));
  return out;
}

class Join final : public Source {
 public:
  Join(SourcePtr left, SourcePtr right, const JoinOptions& options)
      : left_(std::move(left)), right_(std::move(right)), schema_(left_->schema()) {
    add_fields_of_right(options);
    pair_up(options.on);
    Fingerprint print;
    print.add("join");
    print.add(left_->fingerprint());
    print.add(right_->fingerprint());
    for (const Field& field : schema_) print.add(field.name);
    for (const Pair& pair : pairs_) {
      print.add(static_cast<uint64_t>(pair.left));
      print.add(static_cast<uint64_t>(pair.right));
    }
    fingerprint_ = print.value();
  }

  int64_t size() const override { return static_cast<int64_t>(pairs_.size()); }
  const Schema& schema() const override { return schema_; }
  ReadStyle read_style() const override {
    return std::max(left_->read_style(), right_->read_style());
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::string key(int64_t index) const override { return left_->key(pairs_[index].left); }
  Where where(int64_t index) const override {
    Where place = left_->where(pairs_[index].left);
    place.record = index;
    return place;
  }
  std::vector<const Source*> origins() const override {
    std::vector<const Source*> out;
    add_origins(*left_, out);
    add_origins(*right_, out);
    return out;
  }
  Origin origin(int64_t index, size_t field) const override {
    const Pair& pair = pairs_[index];
    if (field < left_fields()) return left_->origin(pair.left, field);
    return right_->origin(pair.right, right_fields_[field - left_fields()]);
  }
  bool shares_files(size_t field) const override {
    if (field < left_fields()) return left_->shares_files(field);
    return right_->shares_files(right_fields_[field - left_fields()]);
  }
  std::string root() const override { return left_->root(); }
  std::vector<std::string> classes() const override {
    std::vector<std::string> names = left_->classes();
    return names.empty() ? right_->classes() : names;
  }
  std::string description() const override {
    std::string out = "join (" + count_text(size(), "record");
    if (left_unmatched_ > 0)
      out += "; " + with_commas(left_unmatched_) + " of the left source without a match";
    if (right_unmatched_ > 0)
      out += "; " + with_commas(right_unmatched_) + " of the right source without a match";
    return out + "): " + left_->description() + " with " + right_->description();
  }

  std::vector<int64_t> integer_column(std::string_view field) const override {
    for (size_t i = 0; i < schema_.size(); ++i) {
      if (schema_[i].name != field) continue;
      const bool of_left = i < left_->schema().size();
      const std::vector<int64_t> all =
          of_left ? left_->integer_column(field)
                  : right_->integer_column(right_->schema()[right_fields_[i - left_fields()]].name);
      if (all.empty()) return {};
      std::vector<int64_t> out;
      for (const Pair& pair : pairs_) out.push_back(all[of_left ? pair.left : pair.right]);
      return out;
    }
    return {};
  }

  // The blocks of the side that is farther away, because its reads take longest.
  std::vector<int64_t> block_ends() const override {
    const bool by_left = left_->read_style() >= right_->read_style();
    return viewed_block_ends(by_left ? *left_ : *right_, size(), [&](int64_t index) {
      return by_left ? pairs_[index].left : pairs_[index].right;
    });
  }
  void will_read(int64_t begin, int64_t end, const std::vector<bool>& wanted) const override {
    const auto [of_left, of_right] = divided(wanted);
    if (any(of_left)) {
      announce_viewed(*left_, begin, end, of_left, [&](int64_t i) { return pairs_[i].left; });
    }
    if (any(of_right)) {
      announce_viewed(*right_, begin, end, of_right, [&](int64_t i) { return pairs_[i].right; });
    }
  }

  void pieces(int64_t index, const std::vector<bool>& wanted,
              std::vector<FilePiece>& out) const override {
    const auto [of_left, of_right] = divided(wanted);
    if (any(of_left)) left_->pieces(pairs_[index].left, of_left, out);
    if (any(of_right)) right_->pieces(pairs_[index].right, of_right, out);
  }
  bool prepare_pieces(int64_t index, const std::vector<bool>& wanted, bool wait) const override {
    const auto [of_left, of_right] = divided(wanted);
    const Pair& pair = pairs_[index];
    const bool left = !any(of_left) || left_->prepare_pieces(pair.left, of_left, wait);
    return (!any(of_right) || right_->prepare_pieces(pair.right, of_right, wait)) && left;
  }
  // Files of the right source are read whole.
  std::string separate_file(int64_t index, size_t field) const override {
    return field < left_fields() ? left_->separate_file(pairs_[index].left, field) : "";
  }

  // The last of a record's parts is its partner, the record of the right source. It is taken off
  // while the left source is read, which may have parts of its own: those of a join in a join.
  void read(std::span<const int64_t> indices, const std::vector<bool>& wanted,
            std::span<RecordData> out) const override {
    if (out.empty()) return;
    const auto [of_left, of_right] = divided(wanted);
    std::vector<RecordData> partners(any(of_right) ? out.size() : 0);
    for (size_t i = 0; i < partners.size(); ++i) {
      if (out[i].parts.empty()) continue;
      partners[i] = std::move(out[i].parts.back());
      out[i].parts.pop_back();
    }
    read_left(indices, of_left, out);
    if (!partners.empty()) read_right(indices, of_right, out, partners);
    for (size_t i = 0; i < out.size(); ++i) {
      out[i].index = indices[i];
      out[i].fields.resize(left_fields());
      out[i].fields.resize(schema_.size());
      if (!partners.empty()) add_partner(std::move(partners[i]), out[i]);
      if (!out[i].result) out[i].result.error().where.record = indices[i];
    }
  }

 private:
  struct Pair {
    int64_t left = 0, right = 0;
  };

  // The requested fields of the left source, and of the right one.
  std::pair<std::vector<bool>, std::vector<bool>> divided(const std::vector<bool>& wanted) const {
    std::vector<bool> of_left(wanted.begin(), wanted.begin() + std::ptrdiff_t(left_fields()));
    std::vector<bool> of_right(right_->schema().size(), false);
    for (size_t i = 0; i < right_fields_.size(); ++i) {
      of_right[right_fields_[i]] = wanted[left_fields() + i];
    }
    return {std::move(of_left), std::move(of_right)};
  }
  size_t left_fields() const { return left_->schema().size(); }
  static bool any(const std::vector<bool>& wanted) { return std::ranges::count(wanted, true) > 0; }

  void read_left(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                 std::span<RecordData> out) const {
    if (!any(wanted)) {
      for (size_t i = 0; i < out.size(); ++i) begin_record(indices[i], left_fields(), 0, out[i]);
      return;
    }
    std::vector<int64_t> records;
    for (const int64_t index : indices) records.push_back(pairs_[index].left);
    read_in_time(*left_, records, wanted, out);
  }

  void read_right(std::span<const int64_t> indices, const std::vector<bool>& wanted,
                  std::span<const RecordData> terms, std::span<RecordData> partners) const {
    const std::vector<bool>* const by_range = terms.front().by_range;
    const std::vector<bool> own = by_range ? divided(*by_range).second : std::vector<bool>();
    std::vector<int64_t> records;
    for (size_t i = 0; i < partners.size(); ++i) {
      records.push_back(pairs_[indices[i]].right);
      partners[i].max_bytes = terms[i].max_bytes;
      partners[i].by_range = by_range && terms[i].by_range == by_range ? &own : nullptr;
    }
    read_in_time(*right_, records, wanted, partners);
    for (RecordData& partner : partners) partner.by_range = nullptr;  // `own` ends here
  }

  void add_partner(RecordData partner, RecordData& out) const {
    if (out.result && !partner.result) out.result = std::move(partner.result);
    for (size_t i = 0; i < right_fields_.size() && out.result; ++i) {
      out.fields[left_fields() + i] = std::move(partner.fields[right_fields_[i]]);
    }
    out.parts.push_back(std::move(partner));  // the memory that its fields point to
  }

  void add_fields_of_right(const JoinOptions& options) {
    for (const auto& [from, to] : options.rename) {
      const bool there = std::any_of(right_->schema().begin(), right_->schema().end(),
                                     [&](const Field& field) { return field.name == from; });
      if (!there || to.empty()) {
        raise(kBadJoin,
              "rename: the right source has no field '" + from + "' to rename to '" + to + "'",
              "rename={\"its name\": \"its new name\"}");
      }
    }
    uint8_t groups = 0;  // row groups of the left source; those of the right source are different
    for (const Field& field : schema_) groups = std::max(groups, field.row_group);
    for (size_t i = 0; i < right_->schema().size(); ++i) {
      Field field = right_->schema()[i];
      if (field.row_group > 0) field.row_group = static_cast<uint8_t>(field.row_group + groups);
      if (field.name == options.on) continue;  // same value as the left one's
      if (const auto renamed = options.rename.find(field.name); renamed != options.rename.end()) {
        field.name = renamed->second;
      }
      const bool taken = std::any_of(schema_.begin(), schema_.end(),
                                     [&](const Field& other) { return other.name == field.name; });
      if (taken) {
        raise(kBadJoin, "both sources have a field '" + field.name + "'",
              "rename the right source's field: rename={\"" + field.name + "\": \"another name\"}");
      }
      schema_.push_back(std::move(field));
      right_fields_.push_back(i);
    }
  }

  void pair_up(const std::string& on) {
    if (on == "position") return pair_up_by_position();
    const std::vector<std::string> keys = values_of(*right_, on, "right");
    std::unordered_map<std::string_view, int64_t> places;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!places.emplace(keys[i], static_cast<int64_t>(i)).second) {
        raise(kBadJoin,
              "'" + keys[i] + "' appears twice in the right source: records " +
                  std::to_string(places.at(keys[i])) + " and " + std::to_string(i),
              "swap the sources if many records share one match, or remove one of the records");
      }
    }
    std::vector<bool> used(keys.size(), false);
    const std::vector<std::string> wanted = values_of(*left_, on, "left");
    for (size_t i = 0; i < wanted.size(); ++i) {
      const auto found = places.find(wanted[i]);
      if (found == places.end()) continue;
      pairs_.push_back({static_cast<int64_t>(i), found->second});
      used[static_cast<size_t>(found->second)] = true;
    }
    left_unmatched_ = static_cast<int64_t>(wanted.size() - pairs_.size());
    right_unmatched_ = std::count(used.begin(), used.end(), false);
    if (pairs_.empty() && !wanted.empty()) {
      raise(kBadJoin,
            "no record of the left source has a match; it has '" + wanted[0] +
                "', the right has '" + (keys.empty() ? "" : keys[0]) + "'",
            "on= names their common field");
    }
  }

  void pair_up_by_position() {
    if (left_->size() != right_->size()) {
      raise(kBadJoin,
            "the left source has " + count_text(left_->size(), "record") + ", but the right has " +
                count_text(right_->size(), "record"),
            "on=\"position\" joins record i of both");
    }
    for (int64_t i = 0; i < left_->size(); ++i) pairs_.push_back({i, i});
  }

  SourcePtr left_, right_;
  Schema schema_;                     // the fields of left_, then right_fields_
  std::vector<size_t> right_fields_;  // field numbers in the schema of right_
  std::vector<Pair> pairs_;
  int64_t left_unmatched_ = 0, right_unmatched_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace

SourcePtr join(const SourcePtr& left, const SourcePtr& right, const JoinOptions& options) {
  SourcePtr joined = std::make_shared<Join>(left, right, options);
  Kinds kinds = kinds_from(options.kinds);
  for (const auto& [from, to] : options.rename) {  // a new name may imply another kind
    if (kinds.contains(to)) continue;
    const Field& field = *std::ranges::find(joined->schema(), to, &Field::name);
    reject_mask_named_image(field);
    kinds[to] = evident_kind(field, joined->schema());
  }
  return with_kinds(std::move(joined), kinds);
}

}  // namespace headrace
