// SPDX-License-Identifier: Apache-2.0
// The opcodes of pickletools.py that protocol 2 has.
#include "wire/pickle_writer.h"

#include <bit>

#include "base/endian.h"
#include "base/utf8.h"

namespace weighbridge::wire {

template <class T> void PickleWriter::fixed(char opcode, T value) {
  char bytes[sizeof(T)];
  base::store_le<T>(bytes, value);
  out_ += opcode;
  out_.append(bytes, sizeof(T));
}

bool PickleWriter::recall(const std::string& key) {
  const auto found = memo_.find(key);
  if (found == memo_.end()) return false;
  if (found->second < 256)
    fixed('h', static_cast<std::uint8_t>(found->second));
  else
    fixed('j', found->second);
  return true;
}

void PickleWriter::remember(std::string key) {
  const auto number = static_cast<std::uint32_t>(memo_.size());
  if (number < 256)
    fixed('q', static_cast<std::uint8_t>(number));
  else
    fixed('r', number);
  memo_.emplace(std::move(key), number);
}

void PickleWriter::integer(std::int64_t value) {
  if (value >= 0 && value <= 0xFF) return fixed('K', static_cast<std::uint8_t>(value));
  if (value >= 0 && value <= 0xFFFF) return fixed('M', static_cast<std::uint16_t>(value));
  if (value >= INT32_MIN && value <= INT32_MAX) return fixed('J', static_cast<std::uint32_t>(value));
  // Two's complement of as few bytes as hold the sign.
  std::string bytes(8, '\0');
  base::store_le<std::uint64_t>(bytes.data(), static_cast<std::uint64_t>(value));
  const char filler = value < 0 ? '\xff' : '\0';
  while (bytes.size() > 1 && bytes.back() == filler && ((bytes[bytes.size() - 2] < 0) == (value < 0))) bytes.pop_back();
  fixed('\x8a', static_cast<std::uint8_t>(bytes.size()));
  out_ += bytes;
}

void PickleWriter::integer(std::uint64_t value) {
  if (value <= INT64_MAX) return integer(static_cast<std::int64_t>(value));
  fixed('\x8a', std::uint8_t{9});
  char bytes[9] = {};
  base::store_le<std::uint64_t>(bytes, value);
  out_.append(bytes, sizeof bytes);
}

void PickleWriter::real(double value) {
  char bytes[8];
  base::store_be<std::uint64_t>(bytes, std::bit_cast<std::uint64_t>(value));
  out_ += 'G';
  out_.append(bytes, sizeof bytes);
}

void PickleWriter::text(std::string_view text) {
  fixed('X', static_cast<std::uint32_t>(text.size()));
  out_ += text;
}

void PickleWriter::common_text(std::string_view value) {
  std::string key = "t" + std::string(value);
  if (recall(key)) return;
  text(value);
  remember(std::move(key));
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  std::string key = "c" + std::string(module) + "\n" + std::string(name);
  if (recall(key)) return;
  out_ += key + "\n";
  remember(std::move(key));
}

void PickleWriter::bytes(std::string_view value) {
  global("_codecs", "encode");
  begin();
  std::string latin;
  for (const char c : value) base::append_utf8(latin, static_cast<unsigned char>(c));
  text(latin);
  common_text("latin1");
  tuple();
  call();
}

}  // namespace weighbridge::wire
