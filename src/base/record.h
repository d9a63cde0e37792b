// SPDX-License-Identifier: Apache-2.0
// Records of a file that a struct mirrors: loads and stores them with little-endian numbers on every processor.
#pragma once
#include <cstring>
#include <string>
#include <type_traits>

#include "base/endian.h"

namespace weighbridge::base {

// A record's namespace has each_number(record, f), which calls f with every member that is a number of the file.

// Reverses the bytes of every number of a record.
template <class Record> void swap_numbers(Record& record) noexcept {
  each_number(record, [](auto& number) { number = byteswap(number); });
}
// The caller has sizeof(Record) bytes at `from`.
template <class Record> Record load_record(const void* from) noexcept {
  static_assert(std::is_trivially_copyable_v<Record>);
  Record record;
  std::memcpy(&record, from, sizeof record);
  if constexpr (std::endian::native == std::endian::big) swap_numbers(record);
  return record;
}
template <class Record> std::string store_record(Record record) {
  static_assert(std::is_trivially_copyable_v<Record>);
  if constexpr (std::endian::native == std::endian::big) swap_numbers(record);
  return {reinterpret_cast<const char*>(&record), sizeof record};
}

}  // namespace weighbridge::base
