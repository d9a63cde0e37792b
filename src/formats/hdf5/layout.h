// SPDX-License-Identifier: Apache-2.0
// Constants of HDF5 by the names of the "HDF5 File Format Specification" 3.0, whose sections are cited. All numbers are
// little-endian; the width of addresses ("offsets") and lengths is in the superblock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/record.h"

namespace weighbridge::hdf5 {

// II.A: the superblock begins at 0, 512, 1024, 2048 and so on; the bytes before it belong to the user.
inline constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
inline constexpr std::uint64_t kFirstUserblock = 512;
inline constexpr std::uint8_t kNewestSuperblock = 3;
WB_RECORD(SuperblockStart, (char[8], signature), (u8, version));
WB_RECORD(SuperblockVersions, (u8, free_space), (u8, root), (u8, reserved), (u8, header_message));  // in 0 and 1
WB_RECORD(SuperblockWidths, (u8, offset_size), (u8, length_size));
// In versions 0 and 1, and in 1 four more bytes. The addresses of the base, the free space, the end and the driver's
// information follow, and the entry of the root group: an offset in its heap of names, and its address.
WB_RECORD(SuperblockTrees, (u8, reserved), (u16, leaf_k), (u16, internal_k), (u32, flags));
// In versions 2 and 3. The addresses of the base, the extension, the end and the root group follow, and a checksum.
WB_RECORD(SuperblockFlags, (u8, flags));
inline constexpr std::uint64_t kUndefined = UINT64_MAX;  // an address whose bits are all set

inline constexpr std::size_t kMaxRank = 32;  // H5S_MAX_RANK

// The signatures of the blocks, each four bytes.
inline constexpr std::string_view kTree = "TREE", kSymbols = "SNOD", kLocalHeap = "HEAP", kGlobalHeap = "GCOL";
inline constexpr std::string_view kHeader2 = "OHDR", kContinuation2 = "OCHK";
inline constexpr std::string_view kTree2 = "BTHD", kTree2Inner = "BTIN", kTree2Leaf = "BTLF";
inline constexpr std::string_view kFractal = "FRHP", kFractalDirect = "FHDB", kFractalIndirect = "FHIB";
inline constexpr std::string_view kFixedArray = "FAHD", kFixedBlock = "FADB";
inline constexpr std::string_view kExtensible = "EAHD", kExtensibleIndex = "EAIB", kExtensibleBlock = "EADB",
                                  kExtensibleSuper = "EASB";

// IV.A.2: messages of an object header.
enum class Message : std::uint16_t {
  nil = 0x00,
  dataspace = 0x01,
  link_info = 0x02,
  datatype = 0x03,
  fill_value_old = 0x04,
  fill_value = 0x05,
  link = 0x06,
  external_files = 0x07,
  layout = 0x08,
  group_info = 0x0A,
  filters = 0x0B,
  attribute = 0x0C,
  comment = 0x0D,
  shared_table = 0x0F,
  continuation = 0x10,
  symbol_table = 0x11,
  driver_info = 0x14,
  attribute_info = 0x15,
  cache_image = 0x18,
  last = 0x19,
};
inline constexpr std::uint8_t kShared = 0x02, kMustKnow = 0x80;  // flags of a message

// IV.A.2.d: classes of datatypes.
enum class Class : std::uint8_t {
  integer = 0,
  real = 1,
  time = 2,
  text = 3,
  bits = 4,
  opaque = 5,
  compound = 6,
  reference = 7,
  enumeration = 8,
  variable = 9,
  array = 10,
  complex = 11,
};

// IV.A.2.l: filters.
inline constexpr std::uint16_t kDeflate = 1, kShuffle = 2, kFletcher32 = 3;
inline constexpr std::uint16_t kLzf = 32000;    // registered by h5py
inline constexpr std::size_t kMaxFilters = 32;  // H5Z_MAX_NFILTERS

// VII: record types of version 2 B-trees.
enum class Record : std::uint8_t { huge = 1, link_name = 5, attribute_name = 8, chunk = 10, filtered_chunk = 11 };

// Appendix C: indexes of chunks in a version 4 layout.
enum class Index : std::uint8_t { tree = 0, single = 1, implicit = 2, fixed = 3, extensible = 4, tree2 = 5 };

// The attribute by which Keras says what opaque elements are.
inline constexpr std::string_view kOpaqueType = "dtype";

// The members of a .keras archive.
inline constexpr std::string_view kKerasWeights = "model.weights.h5", kKerasConfig = "config.json",
                                  kKerasMetadata = "metadata.json";

// The end of the name of an index of weights that Keras 3.10 and later divided: {"metadata": {"total_size": 12.0},
// "weight_map": {"/layers/dense/vars": "model_00000.weights.h5"}}.
inline constexpr std::string_view kKerasIndexSuffix = ".weights.json";

}  // namespace weighbridge::hdf5
