// SPDX-License-Identifier: Apache-2.0
// Object headers, whose messages make an object a group, a dataset or a datatype. Specification IV.A.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/file.h"
#include "weighbridge/value.h"

namespace weighbridge::hdf5 {

struct HeaderMessage {
  Message type{};
  std::uint8_t flags = 0;
  std::string_view bytes{};  // in ObjectHeader::blocks
  std::uint64_t at = 0;      // in the source
};

struct ObjectHeader {
  std::list<std::string> blocks{};
  std::vector<HeaderMessage> messages{};

  const HeaderMessage* find(Message) const noexcept;
  bool has(Message type) const noexcept { return find(type) != nullptr; }
};

// Throws Broken.
ObjectHeader read_object_header(File&, std::uint64_t address);

// The content of a message. For a shared message, the content of the committed datatype to which it refers; `keep` then
// holds that header. Throws Broken.
Cursor content_of(File&, const HeaderMessage&, const Rule&, ObjectHeader& keep);
// The same for a message inside another one, which has no flags of its own: `shared` says whether it is shared.
Cursor content_of(File&, Message, Cursor bytes, bool shared, ObjectHeader& keep);

// Spells each byte of a name that is not valid UTF-8 as \xHH. Returns whether there are any.
bool escape_bytes(std::string& name);

// The members of a group: of old ones from a symbol table, of new ones from link messages in its header or in a
// fractal heap. Specification III.B, III.C, IV.A.2.c, g and r.

struct Link {
  std::string name{};
  enum class Kind : std::uint8_t { hard, soft, external, other } kind = Kind::hard;
  std::uint64_t address = 0;             // hard: of the object header
  std::string target{};                  // soft and external: what it refers to, for messages
  std::optional<std::uint64_t> order{};  // of creation, if the group tracks it
  std::uint64_t at = 0;                  // in the source
};

// Whether an object with this header is a group.
bool is_group(const ObjectHeader&) noexcept;
// In the order of creation if all have one, otherwise sorted by the bytes of their names. Throws Broken.
std::vector<Link> read_links(File&, const ObjectHeader&);

// The attributes of an object, from messages in its header or from a fractal heap. Specification IV.A.2.m and v.

struct Attribute {
  std::string name{};
  Value value{};
  std::uint64_t at = 0;        // in the source
  std::string unknown_type{};  // not empty: the value is the attribute's bytes, of this type
  bool escaped = false;        // the name
};

// Calls take(attribute) for each; broken(fault) for one that is malformed. Throws Broken if there are more that cannot
// be found.
void read_attributes(File&, const ObjectHeader&, const std::function<void(Attribute)>& take,
                     const std::function<void(const Broken&)>& broken);

struct Datatype;
struct Dataspace;
// Elements that are texts, of an attribute or a dataset: one text, a list, or with two or more dimensions a map of
// `shape` and `values`. nullopt: they are not all UTF-8. Throws Broken.
std::optional<Value> read_texts(File&, Cursor elements, const Datatype&, const Dataspace&);

}  // namespace weighbridge::hdf5
