// SPDX-License-Identifier: Apache-2.0
// Converts stored bytes to logical ones, which are little-endian, with bools as 0 and 1: Part::stream() in constant
// memory, and reads at any offset.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codecs/cast.h"
#include "codecs/zstd.h"
#include "core/model/state.h"
#include "core/payload/asking_source.h"
#include "core/payload/elements.h"
#include "core/payload/payload.h"
#include "core/payload/work.h"
#include "io/read.h"

namespace weighbridge {

namespace {

using Sink = std::function<bool(std::span<const std::byte>)>;

// Converts stored elements to logical ones, in place.
void normalize(const core::PartRecord& part, std::span<std::byte> piece) {
  if (part.order == Order::big) base::swap_units(piece, info(part.dtype).swap_bytes);
  if (part.dtype == DType::boolean) codecs::normalize_bools(piece);
}

// Collects pieces of any length into pieces of whole elements.
class Regroup {
 public:
  Regroup(const core::PartRecord& part, const Sink& sink)
      : part_(part),
        sink_(sink),
        capacity_(base::to_size(std::min<std::uint64_t>(core::kPiece, std::max<std::uint64_t>(part.size, 1)))),
        buffer_(std::make_unique_for_overwrite<std::byte[]>(capacity_)) {}

  bool add(std::span<const std::byte> data) {
    while (!data.empty()) {
      const std::size_t n = std::min(data.size(), capacity_ - used_);
      std::memcpy(buffer_.get() + used_, data.data(), n);
      used_ += n;
      data = data.subspan(n);
      if (used_ == capacity_ && !flush()) return false;
    }
    return true;
  }
  // Space into which a caller may write up to room().size() bytes before commit().
  std::span<std::byte> room() { return {buffer_.get() + used_, capacity_ - used_}; }
  bool commit(std::size_t n) {
    used_ += n;
    return used_ < capacity_ || flush();
  }
  bool flush() {
    if (used_ == 0) return true;
    const std::span<std::byte> piece(buffer_.get(), used_);
    used_ = 0;
    normalize(part_, piece);
    return sink_(piece);
  }

 private:
  const core::PartRecord& part_;
  const Sink& sink_;
  std::size_t capacity_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t used_ = 0;
};

void stream_raw(const Source& source, const core::PartRecord& part, const Context& context, const Sink& sink) {
  io::read_pieces(
      core::AskingSource(source, context), part.offset, part.offset + part.size,
      [&](std::uint64_t, std::span<std::byte> piece) {
        normalize(part, piece);
        return sink(piece);
      },
      core::kPiece);
}

// Elements [first, first + count) of a raw strided part.
void stream_steps(const Part& part, std::uint64_t first, std::uint64_t count, const Context& context,
                  const Sink& sink) {
  const core::PartRecord& record = core::Access::record(part);
  core::stream_strided(core::AskingSource(*core::Access::state(part).sources[record.source], context), *part.extent(),
                       part.shape(), part.strides(), info(record.dtype).bits / 8, first, count, core::kPiece,
                       [&](std::span<std::byte> piece) {
                         normalize(record, piece);
                         return sink(piece);
                       });
}

void stream_computed(const core::PartRecord& part, const Builder::Pull& pull, const Context& context,
                     const Sink& sink) {
  Regroup pieces(part, sink);
  std::uint64_t done = 0;
  for (;;) {
    core::check_cancelled(context);
    std::span<std::byte> room = pieces.room();
    if (done == part.size) {  // one more call shows whether it has too much
      std::byte surplus{};
      if (pull(done, {&surplus, 1}) != 0)
        base::misuse("pull-size", fmt::format("a callback gave more than the {} bytes of its part", part.size));
      break;
    }
    room = room.first(base::to_size(std::min<std::uint64_t>(room.size(), part.size - done)));
    const std::size_t n = pull(done, room);
    if (n > room.size()) base::misuse("pull-size", "a callback gave more bytes than there was room for");
    if (n == 0)
      base::misuse("pull-size", fmt::format("a callback gave {} of the {} bytes of its part", done, part.size));
    done += n;
    if (!pieces.commit(n)) return;
  }
  pieces.flush();
}

void stream_made(const Part& part, const core::PartSide& side, const Context& context, const Sink& sink) {
  Regroup pieces(core::Access::record(part), sink);
  std::uint64_t made = 0;
  bool stopped = false;
  try {
    side.make(context, [&](std::span<const std::byte> piece) {
      core::check_cancelled(context);
      made += piece.size();
      // What it is made from has changed since it was measured.
      if (made > part.size()) base::malformed("part/size", "a tensor changed while it was read");
      return !(stopped = !pieces.add(piece));
    });
  } catch (const Error& error) {
    // A format's own decoder does not know which of a model's files it reads.
    const core::State& state = core::Access::state(part);
    const std::uint32_t source = core::Access::record(part).source;
    Finding finding = error.finding();
    if (!state.in_several_files || finding.kind != Kind::malformed || !finding.file.empty() ||
        source >= state.sources.size())
      throw;
    finding.file = core::file_ref(state, source);
    throw Error(std::move(finding));
  }
  if (stopped) return;
  if (made != part.size()) base::malformed("part/size", "a tensor changed while it was read");
  pieces.flush();
}

}  // namespace

namespace core {

namespace {

// Throws Error unless decoding succeeded or the sink stopped it. `from`: where decoding began, in the part's stored
// bytes.
void require_decoded(const Part& part, const codecs::DecodeResult& result, std::uint64_t from) {
  if (result.ok() || result.fault == codecs::DecodeFault::stopped) return;
  const PartRecord& record = Access::record(part);
  Finding finding;
  const bool limit = result.fault == codecs::DecodeFault::memory;
  finding.rule = limit ? "limit/memory" : "part/" + std::string(codec_of(part.encoding())->name);
  finding.file = file_ref(Access::state(part), record.source);
  if (limit) {
    finding.kind = Kind::limit;
    finding.hint = base::limit_hint("memory");
  }
  finding.offset = record.offset + from + result.offset;
  finding.message = fmt::format("part \"{}\" cannot be decompressed: {}", part.role(), result.sentence);
  throw Error(std::move(finding));
}

// Decodes only the frames of seekable zstd that hold the logical bytes from `begin` on. False if the table of frames is
// not right.
bool read_frames(const Part& part, std::uint64_t begin, std::span<std::byte> out, const Context& context) {
  const PartRecord& record = Access::record(part);
  const AskingSource source(*Access::state(part).sources[record.source], context);
  const auto run = codecs::find_frames(
      record.stored_length, part.size(), begin, begin + out.size(),
      [&](std::uint64_t offset, std::span<std::byte> bytes) { source.read_at(record.offset + offset, bytes); });
  if (!run) return false;
  io::StoredBytes stored(source, record.offset + run->offset, run->length);
  std::uint64_t at = run->begin;
  std::span<const std::byte> table(run->table);
  const auto pull = [&](std::span<std::byte> room) -> std::size_t {
    if (const std::size_t n = stored(room); n > 0) return n;
    const std::size_t n = std::min(room.size(), table.size());
    std::ranges::copy(table.first(n), room.begin());
    table = table.subspan(n);
    return n;
  };
  const codecs::LentDecoder decoder(codecs::kZstdSeekable);
  const codecs::DecodeResult result =
      decoder->decode(run->size, context.limits.memory, pull, [&](std::span<const std::byte> piece) {
        const std::uint64_t from = std::max(at, begin), to = std::min(at + piece.size(), begin + out.size());
        if (from < to)
          std::memcpy(out.data() + (from - begin), piece.data() + (from - at), static_cast<std::size_t>(to - from));
        at += piece.size();
        return true;  // to the end of the last frame, which has its checksum there
      });
  require_decoded(part, result, run->offset);
  return true;
}

}  // namespace

bool Chunks::add(std::span<const std::byte> piece) {
  while (going_ && !piece.empty()) {
    if (held_.empty() && piece.size() >= length_) {
      going_ = sink_(piece.first(length_));
      piece = piece.subspan(length_);
      continue;
    }
    const std::size_t n = std::min(piece.size(), length_ - held_.size());
    held_.insert(held_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n));
    piece = piece.subspan(n);
    if (held_.size() < length_) break;
    going_ = sink_(held_);
    held_.clear();
  }
  return going_;
}
void Chunks::finish() {
  if (going_ && !held_.empty()) going_ = sink_(held_);
  held_.clear();
}

bool Excerpt::add(std::span<const std::byte> piece) {
  const auto skip = base::to_size(std::min<std::uint64_t>(piece.size(), begin_));
  begin_ -= skip;
  piece = piece.subspan(skip);
  const std::size_t n = std::min(piece.size(), out_.size());
  if (n > 0) std::memcpy(out_.data(), piece.data(), n);
  out_ = out_.subspan(n);
  return to_end_ || !out_.empty();
}

bool is_direct(const Part& part) noexcept {
  const auto extent = part.extent();
  return part.encoding() == Encoding::raw && extent && extent->length == part.size() &&
         part.dtype() != DType::unknown && part.strides().empty() && !cut_of(part);
}

void read_direct(const Part& part, std::uint64_t offset, std::span<std::byte> out) {
  if (out.empty()) return;
  source_of(part).read_at(part.extent()->offset + offset, out);
  normalize(Access::record(part), out);
}

void read_direct(std::span<const PartRead> reads) {
  std::vector<ReadRange> ranges;
  for (std::size_t first = 0; first < reads.size();) {
    const Source& source = source_of(reads[first].part);
    ranges.clear();
    std::size_t last = first;
    for (; last < reads.size() && &source_of(reads[last].part) == &source; ++last)
      if (!reads[last].out.empty()) ranges.push_back({reads[last].part.extent()->offset, reads[last].out});
    source.read(ranges);
    first = last;
  }
  for (const PartRead& read : reads) normalize(Access::record(read.part), read.out);
}

void decode_part(const Part& part, const Context& context,
                 const std::function<bool(std::span<const std::byte>)>& sink) {
  const codecs::Codec& codec = *codec_of(part.encoding());
  const PartRecord& record = Access::record(part);
  const State& state = Access::state(part);
  const AskingSource source(*state.sources[record.source], context);
  io::StoredBytes stored(source, record.offset, record.stored_length);
  std::uint64_t made = 0;
  const codecs::LentDecoder decoder(codec);
  require_decoded(part,
                  decoder->decode(decoded_size(part), context.limits.memory, std::ref(stored),
                                  [&](std::span<const std::byte> piece) {
                                    // A little input may decode to a lot, so decoded bytes count like bytes read.
                                    if ((made += piece.size()) >= kPiece) {
                                      made = 0;
                                      check_cancelled(context);
                                    }
                                    return sink(piece);
                                  }),
                  0);
}

}  // namespace core

void Part::stream(const Context& context, const std::function<bool(std::span<const std::byte>)>& sink) const {
  const core::PartRecord& part = core::Access::record(*this);
  core::require_work(*this, part.size, context.limits);
  const std::uint64_t decoded = core::decoded_size(*this);
  if (core::is_coded(part.encoding) && decoded > context.limits.decoded) {
    base::over_limit(
        "decoded",
        fmt::format("a part decodes to {} bytes, more than the limit of {}", decoded, context.limits.decoded), decoded);
  }
  if (const auto cut = core::cut_of(*this)) {
    Regroup pieces(part, sink);
    bool stopped = false;
    core::stream_cut(*this, *cut, context,
                     [&](std::span<const std::byte> piece) { return !(stopped = !pieces.add(piece)); });
    if (!stopped) pieces.flush();
    return;
  }
  switch (part.encoding) {
    case Encoding::raw:
      if (!strides().empty()) {
        stream_steps(*this, 0, count(), context, sink);
        return;
      }
      if (part.stored_length != part.size) {
        base::unsupported(
            "unsupported/elements",
            fmt::format("the elements of part \"{}\" are not stored plainly: {} bytes where {} are needed", role(),
                        part.stored_length, part.size));
      }
      stream_raw(*core::Access::state(*this).sources[part.source], part, context, sink);
      return;
    case Encoding::zstd:
    case Encoding::zstd_seekable:
    case Encoding::deflate: {
      Regroup pieces(part, sink);
      bool stopped = false;
      core::decode_part(*this, context,
                        [&](std::span<const std::byte> piece) { return !(stopped = !pieces.add(piece)); });
      if (!stopped) pieces.flush();
      return;
    }
    case Encoding::computed:
      if (const core::PartSide& side = core::Access::state(*this).part_sides[part.side]; side.elements)
        side.elements->stream(context, sink);
      else if (side.make)
        stream_made(*this, side, context, sink);
      else
        stream_computed(part, side.pull, context, sink);
      return;
    case Encoding::unknown:
      base::unsupported("unsupported/encoding",
                        fmt::format("part \"{}\" is stored with encoding \"{}\", which this build does not decode",
                                    role(), encoding_name()));
  }
}

void Part::read_range(std::uint64_t first, std::uint64_t count, std::span<std::byte> out,
                      const Context& context) const {
  const core::PartRecord& part = core::Access::record(*this);
  const std::uint64_t bits = info(part.dtype).bits, all = this->count();
  const auto begin = packed_size(part.dtype, first), size = packed_size(part.dtype, count);
  if (!base::fits(first, count, all) || !begin || !size)
    base::misuse("range", fmt::format("part \"{}\" has {} elements; [{}, {} + {}) is past its end", role(), all, first,
                                      first, count));
  if (bits == 0 || first * bits % 8 != 0 || *size != out.size())
    base::misuse("range", fmt::format("elements [{}, {} + {}) of part \"{}\" are not {} whole bytes of {}", first,
                                      first, count, role(), out.size(), dtype_name()));
  if (out.empty()) return;
  if (core::is_direct(*this)) {
    const core::AskingSource source(*core::Access::state(*this).sources[part.source], context);
    source.read_at(part.offset + *begin, out);
    normalize(part, out);
    return;
  }
  if (part.encoding == Encoding::zstd_seekable && !core::cut_of(*this) &&
      core::read_frames(*this, *begin, out, context)) {
    normalize(part, out);
    return;
  }
  if (part.encoding == Encoding::raw && !strides().empty() && !core::cut_of(*this)) {
    core::require_work(*this, out.size(), context.limits);
    std::uint64_t filled = 0;
    stream_steps(*this, first, count, context, [&](std::span<const std::byte> piece) {
      std::memcpy(out.data() + filled, piece.data(), piece.size());
      filled += piece.size();
      return true;
    });
    return;
  }
  if (part.encoding == Encoding::computed && core::Access::state(*this).part_sides[part.side].elements)
    return core::Access::state(*this).part_sides[part.side].elements->read(first, count, out, context);
  // Other encoded parts and computed ones are streamed from the start to the last requested element.
  core::Excerpt excerpt(*begin, out, first + count == all);
  stream(context, [&](std::span<const std::byte> piece) { return excerpt.add(piece); });
}

Bytes Part::stored() const {
  const core::PartRecord& part = core::Access::record(*this);
  if (!part.has_extent) base::misuse("no-extent", "a computed part has no stored bytes");
  const std::size_t length = base::to_size(part.stored_length);
  const std::shared_ptr<std::byte[]> copy(new std::byte[length]);
  core::Access::state(*this).sources[part.source]->read_at(part.offset, {copy.get(), length});
  return {{copy.get(), length}, copy};
}

}  // namespace weighbridge
