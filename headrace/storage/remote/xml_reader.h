// SPDX-License-Identifier: Apache-2.0
// A pull parser for the XML that object stores answer with: elements and text, in the order of the
// document. No DTD, no entities but the five of XML and numbers, no namespaces. Documents are
// untrusted: depth and sizes are bounded by the document, nothing is expanded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace headrace {

class XmlReader {
 public:
  // The text stays the caller's.
  explicit XmlReader(std::string_view document) : rest_(document) {}

  enum class Event { kBegin, kEnd, kText, kOver, kDamaged };
  // The next one. An element without content is a begin and an end.
  Event next();
  // Name of a begin and an end, without its namespace's prefix.
  std::string_view name() const { return name_; }
  // Attributes of a begin, as they are written.
  std::string_view attributes() const { return attributes_; }
  // Text, with entities resolved.
  const std::string& text() const { return text_; }

 private:
  Event tag();
  bool skip_past(std::string_view end);

  std::string_view rest_, name_, attributes_;
  std::string text_;
  bool empty_element_ = false;
};

// "&lt;&#65;" -> "<A"; empty where an entity is unknown.
std::optional<std::string> text_of_xml(std::string_view text);

}  // namespace headrace
