// SPDX-License-Identifier: Apache-2.0
// npy and npz to Model. Both add arrays with one function; an npz finds them in the members of its archive.
//
//   .npy: "\x93NUMPY" | u8 major | u8 minor | u16 or u32 length of the header | header | elements
//   header: a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, then spaces (header.h)
//   .npz: a zip archive (core/archive/zip.h) whose members NAME.npy are such arrays
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "core/archive/zip.h"
#include "core/model/plan_text.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/reading/rules.h"
#include "core/reading/walker.h"
#include "formats/numpy/format.h"
#include "formats/numpy/header.h"
#include "formats/numpy/layout.h"
#include "formats/numpy/rules.h"
#include "io/read.h"

namespace weighbridge::numpy {
namespace {

using core::bytes_text;

// Where an array lies.
struct Place {
  std::string_view name;     // of the tensor
  bool named = false;        // whether findings name it
  std::uint64_t offset = 0;  // of the stored bytes
  std::uint64_t stored = 0;  // bytes
  std::uint64_t size = 0;    // once decoded
  Encoding encoding = Encoding::raw;
};

class Walk {
 public:
  Walk(const Context& context, const ArrayRules& rules, core::Findings& findings, core::Draft& draft)
      : context_(context), rules_(rules), findings_(findings), draft_(draft) {}

  // `bytes` are the bytes of the array before its elements.
  void add(const Place& place, std::string_view bytes) {
    Fault fault;
    core::FieldNotes notes(findings_, place.offset);
    auto header = read_header(bytes, rules_, fault, &notes);
    const core::At start = at(place, fault.at);
    if (!header) return findings_.report(*fault.rule, start, std::move(fault.expected), std::move(fault.found));
    if (place.encoding == Encoding::raw) notes.report(Span::Kind::structure, "array header", 0, header->data_at);
    const std::uint64_t there = place.size - header->data_at;
    if (!header->unsupported && !fits(place, *header, there)) return;
    add(place, *std::move(header), there);
  }

 private:
  core::At at(const Place& place, std::uint64_t in_array) const {
    core::At out{.offset = place.offset + (place.encoding == Encoding::raw ? in_array : 0)};
    if (place.named) out.tensor = place.name;
    return out;
  }

  // Whether the file has all elements.
  bool fits(const Place& place, const Header& header, std::uint64_t there) {
    const std::uint64_t needed = *size_of(header.dtype, header.shape);
    // If the array is the whole file, it determines the file's length.
    const auto placed = [&](std::uint64_t in_array) {
      core::At out = at(place, in_array);
      if (!place.named) out.hint = base::size_hint(header.data_at + needed);
      return out;
    };
    if (needed > there)
      return findings_.fail(rules_.kTruncated, placed(place.size), core::in_bytes(needed), core::in_bytes(there),
                            core::missing_text(needed - there));
    if (needed < there)
      findings_.report(rules_.kTrailing, placed(header.data_at + needed), {}, core::in_bytes(there - needed));
    if (place.encoding != Encoding::raw && place.size > context_.limits.decoded)
      return findings_.fail(core::rules::kLimitDecoded, at(place, 0),
                            core::at_most(core::in_bytes(context_.limits.decoded)), core::in_bytes(place.size));
    return true;
  }

  void add(const Place& place, Header header, std::uint64_t there) {
    const std::uint32_t tensor = draft_.add_tensor(place.name, Layout::dense, header.dtype, header.shape);
    const bool raw = place.encoding == Encoding::raw, known = header.dtype != DType::unknown;
    const std::uint64_t size = known ? *size_of(header.dtype, header.shape) : there;
    const Extent extent = raw ? Extent{0, place.offset + header.data_at, size} : Extent{0, place.offset, place.stored};
    const std::uint32_t part = draft_.add_part("data", header.dtype, header.shape, place.encoding, extent, size);
    if (!raw) {
      const std::uint64_t width = known ? info(header.dtype).bits / 8 : 1;
      draft_.part(part).cut({.whole = place.size, .first = header.data_at, .step = width});
    }
    if (known && header.order == Order::big) draft_.part(part).order(Order::big);
    if (known && header.fortran)
      if (auto strides = fortran_strides(header.shape); !strides.empty()) draft_.part(part).strides(std::move(strides));
    if (known) return;
    draft_.part(part).dtype_name(header.type);
    draft_.tensor(tensor).type_name(header.type);
    core::At where = at(place, 0);
    where.tensor = place.name;
    Finding why = core::Findings::make(*header.unsupported, where, {}, std::string(core::excerpt(header.type)));
    findings_.report(why);
    draft_.tensor(tensor).unsupported(std::move(why));
  }

  const Context& context_;
  const ArrayRules& rules_;
  core::Findings& findings_;
  core::Draft& draft_;
};

// The members of an npz that are arrays become tensors.
class Archive : core::Walker {
 public:
  using Walker::Walker;

  void run() {
    auto zip = core::read_zip(source_, context_.limits, kZipRules, findings_, draft_);
    if (!zip) return draft_.clear();
    check_front(zip->members.empty());
    draft_.add_checksum("payload", "CRC-32 of each member");
    draft_.reserve(zip->members.size(), zip->members.size(), 2 * zip->members.size());
    std::vector<std::string_view> names;
    names.reserve(zip->members.size());
    for (const core::ZipMember& member : zip->members) names.push_back(member.name);
    std::ranges::sort(names);
    for (core::ZipMember& member : zip->members) {
      if (member.broken || member.is_folder()) continue;
      // numpy.load accepts both names for a member, and could find the wrong one.
      const std::string_view name = array_name(member.name);
      if (name.size() < member.name.size() && std::ranges::binary_search(names, name))
        findings_.report(npz::kAmbiguousName, {.offset = member.entry_at, .tensor = name}, {},
                         core::in_quotes(member.name), {"it is beside ", core::in_quotes(name)});
      else if (!member.utf8_flag &&
               !std::ranges::all_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
        findings_.report(npz::kNameFlag, {.offset = member.entry_at, .tensor = name});
      else
        add(member);
    }
    draft_.index_names();
  }

 private:
  void check_front(bool empty) {
    if (!empty && io::head_of(source_, core::kZipMember.size()) != core::kZipMember)
      findings_.report(npz::kFront, {.offset = 0});
  }

  void add(const core::ZipMember& member) {
    const std::string_view name = array_name(member.name);
    const bool named = name.size() < member.name.size();
    if (member.unreadable != nullptr) return add_unreadable(member, name);
    std::string fault;
    const std::string bytes =
        up_to_elements([&](std::size_t n) { return core::zip_front(source_, member, n, context_, fault); });
    // A member is an array by its name or its content, as in numpy.load.
    if (!named && !bytes.starts_with(kMagic)) {
      findings_.report(npz::kOtherMember, {.offset = member.header_at}, {}, core::in_quotes(member.name));
      draft_.add_left_behind(core::indexed("files", member.name), "a member that is not an array");
      return;
    }
    if (!fault.empty())
      return findings_.report(npz::kDeflate, {.offset = member.offset, .tensor = name}, {}, {}, fault);
    walk_.add({name, true, member.offset, member.stored, member.size, member.encoding}, bytes);
  }

  void add_unreadable(const core::ZipMember& member, std::string_view name) {
    const std::uint32_t tensor = draft_.add_tensor_without_shape(name, Layout::dense, DType::unknown);
    const std::uint64_t count[] = {member.stored};
    const std::uint32_t part = draft_.add_part("data", DType::unknown, count, Encoding::unknown,
                                               {0, member.offset, member.stored}, member.size);
    draft_.part(part).encoding_name(member.found.empty() ? "encrypted" : member.found);
    Finding why =
        core::Findings::make(*member.unreadable, {.offset = member.entry_at, .tensor = name}, {}, member.found);
    findings_.report(why);
    draft_.tensor(tensor).unsupported(std::move(why));
  }

  Walk walk_{context_, kNpzRules, findings_, draft_};
};

}  // namespace

std::string_view array_name(std::string_view member) noexcept {
  return member.ends_with(kSuffix) ? member.substr(0, member.size() - kSuffix.size()) : member;
}

void read_npy(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("npy");
  const std::string bytes = up_to_elements([&](std::size_t n) { return io::head_of(source, n); });
  if (bytes.size() > kVersionAt + 1 && bytes.starts_with(kMagic))
    draft.set_version(std::to_string(static_cast<unsigned char>(bytes[kVersionAt])) + "." +
                      std::to_string(static_cast<unsigned char>(bytes[kVersionAt + 1])));
  Walk(context, kNpyRules, findings, draft).add({kArray, false, 0, source.size(), source.size(), Encoding::raw}, bytes);
}

void read_npz(const Source& source, const Context& context, core::Findings& findings, core::Draft& draft) {
  draft.set_format("npz");
  Archive(source, context, findings, draft).run();
}

}  // namespace weighbridge::numpy
