// SPDX-License-Identifier: Apache-2.0
// A kind of field, as data. Each kind has a file in this folder, whose last line registers its
// KindRecord.
//
// To add a kind, copy boxes.cc. Any thread may call the functions of a record; the caller owns the
// values and the renderer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.h"
#include "headrace/fields/field.h"

namespace headrace {

struct BeginContext;   // begin.h
struct FieldValue;     // record.h
struct FollowContext;  // geometry.h

// The form of a value while its record is processed, which determines how it is written to a slot:
// images and masks are rendered into it; numbers are copied, to a fixed position if all records
// have the same shape, else as an item of a list, from which a batch may make one tensor (Note
// [Ragged outputs] in pipeline/plan_ragged.cc); a string is always an item of a list.
enum class ValueForm : uint8_t { kPicture, kNumbers, kString };

struct KindRecord {
  std::string_view name;  // "boxes"
  std::string_view doc;   // a description, and what operators do with it
  FieldKind kind;         // its number, as stored in packs
  ValueForm form = ValueForm::kNumbers;
  // Its values are in the coordinates of the record's images: operators that move these must move
  // it too.
  bool spatial = false;
  // For images and masks: how encoded ones are decoded, which determines the number of channels.
  ColorMode color = ColorMode::kRGB;

  // The media kind of its encoded values, by MediaRecord::name (media.h); empty: none.
  std::string_view media = {};

  // Changes a field to this kind, as declared by the user; false if its values cannot be of this
  // kind.
  bool (*take)(Field& field);
  // Whether begin() accepts an open file (FieldData::file) instead of bytes, from which it reads
  // what it needs.
  bool by_range = false;
  // Converts a record's value from its stored form to the form used in the pipeline. Errors are
  // errors of the record.
  Result<void> (*begin)(const BeginContext& from, FieldValue& value);

  // Applies a geometry to a value. Errors are errors of the record. Null: the kind does not support
  // it.
  Result<void> (*follow)(const FollowContext& way, FieldValue& value) = nullptr;
  // At plan time: what the user must declare or change so that this field can follow a geometry; ""
  // if it can already. Null: every field of the kind can.
  std::string (*wants)(const FieldState& field) = nullptr;
  // At plan time: updates the field when an operator has changed an image of its record to
  // `picture`. Null: nothing changes. (For images and masks themselves, the operator does this.)
  void (*plan)(FieldState& field, const FieldState& picture) = nullptr;
};

// The kind with this number or name; null if unknown.
const KindRecord* find_kind(FieldKind kind);
const KindRecord* find_kind(std::string_view name);
// REQUIRES: the kind is registered.
const KindRecord& record_of(FieldKind kind);
// All kinds, sorted by number.
std::vector<const KindRecord*> all_kinds();

inline std::string_view name_of(FieldKind kind) { return record_of(kind).name; }
inline bool is_picture(FieldKind kind) { return record_of(kind).form == ValueForm::kPicture; }
inline bool is_string(FieldKind kind) { return record_of(kind).form == ValueForm::kString; }
inline bool is_spatial(FieldKind kind) { return record_of(kind).spatial; }
// Whether the field moves together with the record's images.
bool follows(const FieldState& field);

}  // namespace headrace
