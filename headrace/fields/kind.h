// SPDX-License-Identifier: Apache-2.0
// A kind of field, as data: one file of this folder per kind, which registers its KindRecord on
// its last line.
//
// Copy boxes.cc. Any thread may call the functions of a record; the caller owns the values and
// the renderer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/fields/field.h"

namespace headrace {

struct Beginning;   // begin.h
struct FieldValue;  // record.h
struct Following;   // geometry.h

// The form of a value while its record is in flight, and so how it gets into a slot: a picture is
// rendered there; numbers are copied, into a fixed place where all records have one shape, else as
// an item of a list, from which a batch may make one tensor (Note [Ragged outputs] in
// pipeline/plan_ragged.cc); a string is an item always.
enum class ValueForm : uint8_t { kPicture, kNumbers, kString };

struct KindRecord {
  std::string_view name;  // "boxes"
  std::string_view doc;   // a description, and what steps do with it
  FieldKind kind;         // its number, which packs store
  ValueForm form = ValueForm::kNumbers;
  // Its values lie in the coordinates of the record's pictures: whoever moves these must move it.
  bool spatial = false;
  // For pictures: how encoded ones are decoded, and so how many channels they have.
  ColorMode color = ColorMode::kRGB;

  // Media of its encoded values, by MediaRecord::name (media.h); empty: it has none.
  std::string_view media = {};

  // Makes the field one of this kind, when the user says that it is; false where its values cannot
  // be.
  bool (*take)(Field& field);
  // Whether begin() takes an open file (FieldData::file) in place of bytes, of which it reads what
  // it needs.
  bool by_range = false;
  // A record's value as read -> in flight. Errors are the record's.
  Result<void> (*begin)(const Beginning& from, FieldValue& value);

  // How a value follows a geometry. Errors are the record's. Null: the kind cannot.
  Result<void> (*follow)(const Following& way, FieldValue& value) = nullptr;
  // Plan time: what the user would have to say, or change, so that this field follows; "" where it
  // does already. Null: every field of the kind does.
  std::string (*wants)(const FieldState& field) = nullptr;
  // Plan time: what becomes of the field where a picture of its record has become `picture`. Null:
  // it stays what it is. (Of pictures themselves the operator says it.)
  void (*plan)(FieldState& field, const FieldState& picture) = nullptr;
};

// The kind of this number or name; null where there is none.
const KindRecord* find_kind(FieldKind kind);
const KindRecord* find_kind(std::string_view name);
// REQUIRES: a kind that is registered.
const KindRecord& record_of(FieldKind kind);
// All, by number.
std::vector<const KindRecord*> all_kinds();

inline std::string_view name_of(FieldKind kind) { return record_of(kind).name; }
inline bool is_picture(FieldKind kind) { return record_of(kind).form == ValueForm::kPicture; }
inline bool is_string(FieldKind kind) { return record_of(kind).form == ValueForm::kString; }
inline bool is_spatial(FieldKind kind) { return record_of(kind).spatial; }
// Whether the field moves along when the record's pictures do.
bool follows(const FieldState& field);

}  // namespace headrace
