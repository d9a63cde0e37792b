// SPDX-License-Identifier: Apache-2.0
#include "delta/encode.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/endian.h"
#include "codecs/codec.h"
#include "core/model/progress.h"
#include "core/payload/payload.h"
#include "io/forwarding_source.h"

namespace weighbridge::delta {
namespace {

constexpr std::uint64_t kTogether = 16u << 20;  // bytes of small tensors that are encoded before they are written

class Held final : public io::ForwardingSource {
 public:
  Held(std::shared_ptr<const Source> of, std::shared_ptr<io::AtomicFile> file)
      : ForwardingSource(std::move(of)), file_(std::move(file)) {}

 private:
  std::shared_ptr<io::AtomicFile> file_;
};

std::string list_of(std::span<const std::uint32_t> numbers) {
  std::string out;
  for (const std::uint32_t each : numbers) out.append(out.empty() ? "" : ",").append(std::to_string(each));
  return out;
}

}  // namespace

Scratch::Scratch(const std::string& beside)
    : file_(std::make_shared<io::AtomicFile>(beside, io::AtomicFileOptions{.replace = true})) {}
void Scratch::append(std::span<const std::byte> bytes) {
  file_->write_at(size_, bytes);
  size_ += bytes.size();
}
std::shared_ptr<const Source> Scratch::source() const { return std::make_shared<Held>(file_->reopen(), file_); }

// A chunk as it is stored.
struct Writer::Piece {
  std::uint64_t changed = 0, words = 0;
  bool wide = false;   // a gap exceeds its bytes
  bool dense = false;  // so many changes that it was not encoded
  std::vector<codecs::Digest256> leaves[2]{};
  std::vector<std::byte> bytes{};
  std::vector<std::uint32_t> frames{};
};
// What one thread needs, kept between chunks.
struct Writer::Room {
  Made made{};
  std::vector<std::byte> plane{};
  std::unique_ptr<codecs::Encoder> encoder = codecs::kZstd.encoder();
};

Writer::Writer(const PatchOptions& options, const Context& context, std::uint64_t total)
    : options_(options), context_(context), progress_(context, total), scratch_(options.scratch) {}

Writer::~Writer() = default;

void Writer::add_whole(std::string name, const Tensor& tensor) {
  flush();
  objects_.push_back({.name = std::move(name), .whole = tensor});
}
void Writer::add_rename(std::string name, std::string from) {
  flush();
  Object object{.name = std::move(name)};
  object.coded.form = {.op = Op::rename, .from = std::move(from)};
  objects_.push_back(std::move(object));
}

void Writer::add(Job job) {
  if (job.form.chunks() <= kSmall) {
    waiting_.push_back(std::move(job));
    std::uint64_t bytes = 0;
    for (const Job& each : waiting_) bytes += each.form.units * each.form.width;
    if (bytes >= kTogether || waiting_.size() >= 1024) flush();
    return;
  }
  flush();
  Object object{.name = job.name};
  encode(job, core::executor_of(context_), object.coded, &scratch_);
  if (!object.coded.left_out) objects_.push_back(std::move(object));
}

void Writer::flush() {
  std::vector<Coded> made(waiting_.size());
  const auto alone = inline_executor();
  core::executor_of(context_).for_each(waiting_.size(), [&](std::uint64_t i) {
    encode(waiting_[base::to_size(i)], *alone, made[base::to_size(i)], nullptr);
  });
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].offset = scratch_.size();
    scratch_.append(made[i].held);
    made[i].held = {};
    if (!made[i].left_out) objects_.push_back({.name = std::move(waiting_[i].name), .coded = std::move(made[i])});
  }
  waiting_.clear();
}

void Writer::encode(const Job& job, Executor& executor, Coded& out, Scratch* to) {
  out.form = job.form;
  out.form.counts.clear();
  out.form.op = Op::sparse;
  out.form.gap = kUsualGap;
  out.offset = to ? to->size() : 0;
  for (bool probe = job.form.code != Code::set; !encode_as(job, executor, probe, out, to); probe = false) {
    if (to) to->cut(out.offset);
    out.held.clear();
    out.frames.clear();
    out.form.counts.clear();
  }
  out.length = to ? to->size() - out.offset : out.held.size();
  out.left_out = job.done && !job.done(out.changed);
}

// False if another form is smaller or needed, which it sets.
bool Writer::encode_as(const Job& job, Executor& executor, bool probe, Coded& out, Scratch* to) {
  const std::uint64_t chunks = job.form.chunks(), batch = std::uint64_t{2} * executor.concurrency();
  probe &= out.form.op == Op::sparse;
  std::uint64_t& changed = out.changed = 0;
  out.decoded = 0;
  std::vector<Piece> pieces;
  // The first chunk alone shows what the others are like.
  for (std::uint64_t begin = 0; begin < chunks; begin += pieces.size()) {
    const bool first = probe && begin == 0;
    pieces.assign(base::to_size(std::min(first ? 1 : batch, chunks - begin)), {});
    executor.for_each(pieces.size(), [&](std::uint64_t i) {
      std::unique_ptr<Room> room;
      {
        const std::lock_guard lock(mutex_);
        if (!rooms_.empty()) {
          room = std::move(rooms_.back());
          rooms_.pop_back();
        }
      }
      if (!room) room = std::make_unique<Room>();
      room->made.hash = job.hashed && begin + i >= out.hashed;
      encode_chunk(job, out.form, begin + i, first, *room, pieces[base::to_size(i)]);
      if (room->made.hash)
        for (const int side : {0, 1}) pieces[base::to_size(i)].leaves[side].swap(room->made.leaves[side]);
      const std::lock_guard lock(mutex_);
      rooms_.push_back(std::move(room));
    });
    for (std::size_t i = 0; job.hashed && i < pieces.size(); ++i)
      if (begin + i == out.hashed) job.hashed(pieces[i].leaves[0], pieces[i].leaves[1]), ++out.hashed;
    for (const Piece& piece : pieces) {
      changed += piece.changed;
      if (piece.wide) return out.form.gap = 4, false;
      if (piece.dense) return out.form.op = Op::dense, out.form.gap = 0, false;
      if (out.form.op == Op::sparse) out.form.counts.push_back(static_cast<std::uint32_t>(piece.changed));
      out.decoded += piece.words * out.form.planes();
      out.frames.insert(out.frames.end(), piece.frames.begin(), piece.frames.end());
      if (to)
        to->append(piece.bytes);
      else
        out.held.insert(out.held.end(), piece.bytes.begin(), piece.bytes.end());
    }
    if (out.form.op == Op::sparse && job.form.code != Code::set && is_dense(changed, job.form.units)) {
      out.form.op = Op::dense;
      out.form.gap = 0;
      return false;
    }
  }
  if (out.form.op == Op::dense && !is_dense(changed, job.form.units)) {
    out.form.op = Op::sparse;
    out.form.gap = kUsualGap;
    return false;
  }
  return true;
}

void Writer::encode_chunk(const Job& job, const Form& form, std::uint64_t chunk, bool probe, Room& room, Piece& out) {
  const bool dense = form.op == Op::dense;
  job.make(chunk, dense, room.made, progress_.inner());
  out.changed = room.made.changed;
  const std::vector<std::uint32_t>& at = room.made.words.at;
  const std::size_t n = room.made.count;
  out.words = n;
  if ((out.dense = probe && is_dense(out.changed, form.units_in(chunk))) || n == 0) return;
  room.plane.resize(n);
  const auto put = [&] {
    const std::size_t before = out.bytes.size();
    const auto sink = [&](std::span<const std::byte> bytes) {
      out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
    };
    room.encoder->begin(n, options_.level);
    room.encoder->push(room.plane, sink);
    room.encoder->finish(sink);
    out.frames.push_back(static_cast<std::uint32_t>(out.bytes.size() - before));
  };
  for (std::uint32_t b = 0; b < form.gap; ++b) {
    std::uint32_t before = UINT32_MAX, largest = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t gap = at[i] - before - 1;
      before = at[i];
      largest = std::max(largest, gap);
      room.plane[i] = static_cast<std::byte>(gap >> 8 * b);
    }
    if (form.gap < 4 && largest >> 8 * form.gap != 0) {
      out.wide = true;
      return;
    }
    put();
  }
  with_width(form.width, [&]<class T>(T) {
    for (std::size_t b = 0; b < sizeof(T); ++b) {
      const std::byte* from = room.made.words.words.data();
      for (std::size_t i = 0; i < n; ++i)
        room.plane[i] = static_cast<std::byte>(base::load_le<T>(from + i * sizeof(T)) >> 8 * b);
      put();
    }
  });
}

Model Writer::finish(const std::vector<Row>& rows, const Metadata& metadata) {
  flush();
  progress_.finish();
  std::string names;
  std::vector<std::byte> nodes;
  for (const Row& row : rows) {
    std::byte size[4];
    base::store_le(size, static_cast<std::uint32_t>(row.name.size()));
    names.append(reinterpret_cast<const char*>(size), 4).append(row.name);
    for (const auto* node : {&row.base, &row.result}) nodes.insert(nodes.end(), node->begin(), node->end());
  }
  const std::uint64_t at_names = scratch_.size();
  scratch_.append(std::as_bytes(std::span(names)));
  const std::uint64_t at_nodes = scratch_.size();
  scratch_.append(nodes);

  core::Draft draft;
  draft.set_format("zt");
  draft.set_version("1.1.0");
  const std::uint32_t source = draft.add_source(scratch_.source());
  draft.set_attributes({{std::string(kVersion), Value::text("1")},
                        {std::string(kBase), Value::text(id_of(rows, &Row::base).text())},
                        {std::string(kResult), Value::text(id_of(rows, &Row::result).text())},
                        {std::string(kMetadata), Value::text(metadata.digest())}});
  const auto add_bytes = [&](std::string_view name, std::uint64_t offset, std::uint64_t length, std::uint64_t size,
                             Encoding encoding) {
    const std::uint32_t at = draft.add_tensor(name, Layout::dense, DType::u8, {&size, 1});
    draft.add_part("data", DType::u8, {&size, 1}, encoding, {source, offset, length}, size);
    return at;
  };
  for (const Object& object : objects_) {
    if (object.whole.part_count() > 0) {
      draft.adopt(object.name, object.whole);
      continue;
    }
    const Coded& coded = object.coded;
    const Form& form = coded.form;
    const bool empty = coded.decoded == 0;
    const std::uint32_t at = add_bytes(object.name, empty ? 0 : coded.offset, coded.length, coded.decoded,
                                       empty ? Encoding::raw : Encoding::zstd);
    const auto set = [&](std::string_view key, std::string text) {
      draft.tensor(at).attribute(key, Value::text(std::move(text)));
    };
    set(kOp, std::string(name(form.op)));
    if (form.from != object.name) set(kFrom, form.from);
    if (form.op == Op::rename) continue;
    std::string shape;
    for (const std::uint64_t d : form.shape) shape.append(shape.empty() ? "" : ",").append(std::to_string(d));
    if (form.code != Code::sub) set(kCode, std::string(name(form.code)));
    set(kDtype, std::string(name(form.dtype)));
    set(kShape, std::move(shape));
    if (form.chunk != chunk_of(form.dtype)) set(kChunk, std::to_string(form.chunk));
    if (form.op == Op::sparse) {
      if (form.gap != kUsualGap) set(kGap, std::to_string(form.gap));
      if (form.chunks() > 1) set(kCounts, list_of(form.counts));
    }
    if (form.chunks() > 1) set(kFrames, list_of(coded.frames));
  }
  add_bytes(kNames, at_names, names.size(), names.size(), Encoding::raw);
  add_bytes(kNodes, at_nodes, nodes.size(), nodes.size(), Encoding::raw);
  if (!metadata.empty()) {
    const std::uint32_t at = add_bytes(kChanged, 0, 0, 0, Encoding::raw);
    for (const auto& [key, value] : metadata.set) draft.tensor(at).attribute(kSet + key, value);
    for (const std::string& key : metadata.unset) draft.tensor(at).attribute(kUnset + key, {});
  }
  draft.index_names();
  return draft.finish();
}

void read_chunk(const core::Elements& elements, const Form& form, std::uint64_t chunk, std::vector<std::byte>& out,
                const Context& context) {
  const std::uint64_t bits = info(form.dtype).bits, begin = chunk * form.chunk * form.width;
  const std::uint64_t size = form.units_in(chunk) * form.width, first = begin * 8 / bits;
  out.resize(base::to_size(size));
  elements.read(first, std::min(size * 8 / bits, elements.count() - first), out, context);
}

core::ElementsPtr in_any_order(const Part& part, const std::string& beside, const Context& context) {
  auto elements = core::elements_of(part);
  if (core::divides(*elements, core::kPiece)) return elements;
  if (part.size() <= context.limits.memory / 16) {
    const auto whole = std::make_shared<std::vector<std::byte>>();
    part.stream(context, [&](std::span<const std::byte> piece) {
      return whole->insert(whole->end(), piece.begin(), piece.end()), true;
    });
    return core::held_elements(part.dtype(), part.count(), {*whole, whole});
  }
  Scratch scratch(beside);
  part.stream(context, [&](std::span<const std::byte> piece) { return scratch.append(piece), true; });
  return core::made_elements(part.dtype(), part.count(),
                             [source = scratch.source(), dtype = part.dtype()](
                                 std::uint64_t first, std::uint64_t, std::span<std::byte> out, const Context&) {
                               source->read_at(core::bytes_of(dtype, first), out);
                             });
}

}  // namespace weighbridge::delta
