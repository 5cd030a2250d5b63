// SPDX-License-Identifier: Apache-2.0
// A pull parser for the XML responses of object stores: elements and text, in document order. No
// DTD, no entities except the five predefined ones and character references, no namespaces.
// Documents are untrusted: depth and sizes are bounded by the document's length, nothing is
// expanded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

class XmlReader {
 public:
  // The caller owns the text.
  explicit XmlReader(std::string_view document) : rest_(document) {}

  enum class Event { kBegin, kEnd, kText, kOver, kDamaged };
  // The next event. An element without content gives kBegin and kEnd.
  Event next();
  // The element's name, after kBegin and kEnd, without its namespace prefix.
  std::string_view name() const { return name_; }
  // The element's attributes as written, after kBegin.
  std::string_view attributes() const { return attributes_; }
  // The text, after kText, with entities resolved.
  const std::string& text() const { return text_; }

 private:
  Event tag();
  bool skip_past(std::string_view end);

  std::string_view rest_, name_, attributes_;
  std::string text_;
  bool empty_element_ = false;
};

// "&lt;&#65;" -> "<A"; empty if an entity is unknown.
std::optional<std::string> text_of_xml(std::string_view text);

}  // namespace headrace
