// SPDX-License-Identifier: Apache-2.0
// Object headers: the messages that make an object a group, a dataset or a datatype. Specification IV.A.
#pragma once
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hdf5/file.h"

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

// The content of a message. If it is shared, that of the committed datatype that it refers to, whose header `keep`
// then has. Throws Broken.
Cursor content_of(File&, const HeaderMessage&, const Rule&, ObjectHeader& keep);
// The same for a message inside another one, which has no flags of its own: `shared` says whether it is shared.
Cursor content_of(File&, Message, Cursor bytes, bool shared, ObjectHeader& keep);

}  // namespace weighbridge::hdf5
