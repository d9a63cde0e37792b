// SPDX-License-Identifier: Apache-2.0
// Reads both versions of object headers with their continuation blocks, and resolves shared messages.
#include "formats/hdf5/object_header.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/utf8.h"
#include "codecs/checksum.h"

namespace weighbridge::hdf5 {
namespace {

struct Continuation {
  std::uint64_t address = 0, length = 0;
};

class ObjectHeaderReader {
 public:
  ObjectHeaderReader(File& file, std::uint64_t address) : file_(file), address_(address) {}

  ObjectHeader run() {
    const std::string head = file_.read(address_, 4);
    if (head == kHeader2)
      begin2();
    else
      begin1();
    while (!more_.empty()) {
      const Continuation next = more_.front();
      more_.pop_front();
      visited_.add(file_, next.address);
      if (second_) {
        const std::string& block = keep(file_.block(next.address, next.length, kContinuation2, true));
        messages2(Cursor(file_, std::string_view(block).substr(4, block.size() - 8), file_.base + next.address + 4,
                         file_.rules.kObjectHeader));
      } else {
        messages1(Cursor(file_, keep(file_.read(next.address, next.length, "continuation of an object header")),
                         file_.base + next.address, file_.rules.kObjectHeader));
      }
    }
    return std::move(out_);
  }

 private:
  const std::string& keep(std::string block) { return out_.blocks.emplace_back(std::move(block)); }

  // IV.A.1.a
  void begin1() {
    constexpr std::uint64_t kPrefix = 16;  // with the padding before the messages
    const std::string head = file_.read(address_, kPrefix, "object header prefix");
    Cursor in(file_, head, file_.base + address_, file_.rules.kObjectHeader);
    if (in.u8() != 1) throw Broken{file_.rules.kBlock, file_.base + address_, "an object header of version 1 or 2"};
    in.skip(1);
    left_ = in.u16();
    in.skip(4);
    const std::uint64_t size = in.u32();
    visited_.add(file_, address_ + kPrefix);
    messages1(Cursor(file_, keep(file_.read(address_ + kPrefix, size, "object header")),
                     file_.base + address_ + kPrefix, file_.rules.kObjectHeader));
  }

  void messages1(Cursor in) {
    while (left_ > 0 && in.left() >= 8) {
      --left_;
      HeaderMessage message;
      message.type = static_cast<Message>(in.u16());
      const std::uint16_t size = in.u16();
      message.flags = in.u8();
      in.skip(3);
      add(message, in, size);
    }
  }

  // IV.A.1.b
  void begin2() {
    second_ = true;
    const std::string head = file_.read(address_, 6);
    const auto flags = static_cast<std::uint8_t>(head[5]);
    if (head[4] != 2) throw Broken{file_.rules.kBlock, file_.base + address_, "an object header of version 2"};
    ordered_ = (flags & 4U) != 0;
    const std::uint64_t before = 6U + ((flags & 0x20U) != 0 ? 16U : 0U) + ((flags & 0x10U) != 0 ? 4U : 0U),
                        width = std::uint64_t{1} << (flags & 3U);
    const std::string sizes = file_.read(address_, before + width);
    Cursor in(file_, sizes, file_.base + address_, file_.rules.kObjectHeader);
    in.skip(before);
    const auto whole = base::checked_add(in.number(static_cast<std::size_t>(width)), before + width + 4);
    if (!whole) in.fail();
    visited_.add(file_, address_);
    const std::string& block = keep(file_.block(address_, *whole, kHeader2, true));
    const std::size_t begin = sizes.size();
    messages2(Cursor(file_, std::string_view(block).substr(begin, block.size() - begin - 4),
                     file_.base + address_ + begin, file_.rules.kObjectHeader));
  }

  void messages2(Cursor in) {
    const std::size_t head = ordered_ ? 6 : 4;
    while (in.left() >= head) {  // less is a gap
      HeaderMessage message;
      message.type = static_cast<Message>(in.u8());
      const std::uint16_t size = in.u16();
      message.flags = in.u8();
      if (ordered_) in.skip(2);
      add(message, in, size);
    }
  }

  void add(HeaderMessage message, Cursor& in, std::uint16_t size) {
    message.at = in.offset();
    message.bytes = in.take(size);
    if (file_.findings != nullptr)
      file_.findings->span(Span::Kind::field, message.at, message.at + size, "header message",
                           [&] { return "type " + std::to_string(static_cast<int>(message.type)); });
    if (message.type == Message::continuation) {
      Cursor at(file_, message.bytes, message.at, file_.rules.kObjectHeader);
      const std::uint64_t address = at.address();
      more_.push_back({address, at.length()});
      return;
    }
    if (message.type > Message::last && (message.flags & kMustKnow) != 0)
      throw Broken{file_.rules.kMessage, message.at, {}, {"message ", static_cast<int>(message.type)}};
    if (message.type != Message::nil) out_.messages.push_back(message);
  }

  File& file_;
  const std::uint64_t address_;
  ObjectHeader out_;
  Visited visited_;
  std::deque<Continuation> more_;
  bool second_ = false, ordered_ = false;
  std::uint32_t left_ = 0;  // messages of version 1
};

}  // namespace

bool escape_bytes(std::string& name) {
  if (base::is_utf8(name)) return false;
  std::string out;
  for (std::size_t at = 0; at < name.size();) {
    const base::Decoded next = base::decode_utf8(name, at);
    const std::string_view bytes = std::string_view(name).substr(at, next.length);
    out += next.valid ? std::string(bytes) : "\\x" + codecs::to_hex(std::as_bytes(std::span(bytes)));
    at += next.length;
  }
  name = std::move(out);
  return true;
}

const HeaderMessage* ObjectHeader::find(Message type) const noexcept {
  const auto found = std::ranges::find(messages, type, &HeaderMessage::type);
  return found == messages.end() ? nullptr : &*found;
}

ObjectHeader read_object_header(File& file, std::uint64_t address) { return ObjectHeaderReader(file, address).run(); }

Cursor content_of(File& file, Message type, Cursor bytes, bool shared, ObjectHeader& keep) {
  if (!shared) return bytes;
  const std::uint64_t at = bytes.offset();
  // IV.A.2: a shared message has the address of an object header with the message, or an id in a shared table.
  const std::uint8_t version = bytes.u8(), kind = bytes.u8();
  if (version < 1 || version > 3) bytes.fail("a shared message of version 1, 2 or 3");
  if (version == 3 && kind == 1) throw Broken{file.rules.kMessage, at, {}, "a message in a shared table"};
  if (version == 1) bytes.skip(6U + file.length_size);  // reserved, and the offset of a name in a local heap
  keep = read_object_header(file, bytes.address());
  const HeaderMessage* const found = keep.find(type);
  if (found == nullptr || (found->flags & kShared) != 0) bytes.fail("a message that is not shared itself");
  return {file, found->bytes, found->at, bytes.rule()};
}

Cursor content_of(File& file, const HeaderMessage& message, const Rule& rule, ObjectHeader& keep) {
  return content_of(file, message.type, Cursor(file, message.bytes, message.at, rule), (message.flags & kShared) != 0,
                    keep);
}

}  // namespace weighbridge::hdf5
