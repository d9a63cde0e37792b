// SPDX-License-Identifier: Apache-2.0
// The descriptors of hdf5 and keras. A .keras is an ordinary zip archive, so it is recognized by its members or its
// extension.
#include "formats/hdf5/format.h"

#include "core/archive/zip.h"
#include "formats/hdf5/file.h"
#include "formats/hdf5/layout.h"
#include "formats/hdf5/rules.h"

namespace weighbridge::hdf5 {
namespace {

constexpr std::string_view kH5Extensions[] = {"h5", "hdf5"}, kKerasExtensions[] = {"keras"};
constexpr Layout kLayouts[] = {Layout::dense};
constexpr Encoding kEncodings[] = {Encoding::raw, Encoding::computed};
constexpr DType kHeldDTypes[] = {DType::boolean, DType::u8,  DType::i8,  DType::u16,       DType::i16,
                                 DType::u32,     DType::i32, DType::u64, DType::i64,       DType::f16,
                                 DType::bf16,    DType::f32, DType::f64, DType::complex64, DType::complex128};

bool is_hdf5(const core::Probe& probe) { return has_superblock(probe.head) || is_keras_index(probe); }

bool is_keras(const core::Probe& probe) {
  const std::string_view head{reinterpret_cast<const char*>(probe.head.data()), probe.head.size()};
  if (probe.extension == kKerasExtensions[0] &&
      (head.starts_with(core::kZipMember) || head.starts_with(core::kZipEmpty)))
    return true;
  const std::string_view first = core::first_zip_member(head);
  return (first == kKerasMetadata && head.find("\"keras_version\"") != head.npos) || first == kKerasWeights;
}

}  // namespace

constexpr core::Format kHdf5 = {
    .info = {.name = "hdf5",
             .title = "HDF5",
             .extensions = kH5Extensions,
             .versions = "superblock 0 to 3",
             .writes = false,
             .holds = {.dtypes = kHeldDTypes,
                       .layouts = kLayouts,
                       .encodings = kEncodings,
                       .attributes = "typed values and arrays"},
             .rules = h5::kAll},
    .matches = is_hdf5,
    .read = read_h5,
    .read_files = read_keras_index,
    .spans_files = is_keras_index,
    .warn_alone = warn_keras_shard_alone,
    .check_content = check_h5,
    .content_can_fail = true,
};

constexpr core::Format kKeras = [] {
  core::Format out = kHdf5;
  out.info.name = "keras";
  out.info.title = "Keras archive";
  out.info.extensions = kKerasExtensions;
  out.info.versions = "Keras 3";
  out.info.rules = keras::kAll;
  out.matches = is_keras;
  out.read = read_keras;
  out.read_files = nullptr;
  out.spans_files = nullptr;
  out.warn_alone = nullptr;
  out.check_content = check_keras;
  return out;
}();

}  // namespace weighbridge::hdf5
