// SPDX-License-Identifier: Apache-2.0
// The comparison after writing. Reads the file through the public API: open(), Part::extent(), Part::stream().
#include "convert/write.h"

#include <algorithm>
#include <string>

#include "base/checked.h"
#include "base/fail.h"
#include "core/model/buffers.h"
#include "core/model/words.h"
#include "core/payload/payload.h"
#include "core/writing/layout.h"
#include "io/read.h"
#include "weighbridge/open.h"

namespace weighbridge::convert {
namespace {

using core::Payload;

[[noreturn]] void differs(const std::string& what) {
  base::io_error("read-back", "what was written does not read back: " + what + "; the output was not published");
}

class ReadBack {
 public:
  ReadBack(const Expected& expected, const Record& record, std::shared_ptr<const Source> source,
           core::Progress& progress)
      : expected_(expected),
        layout_(expected.layout),
        record_(record),
        source_(std::move(source)),
        quiet_(progress.inner()),
        progress_(progress) {
    reopen();
    check_text(layout_.prefix_length, record.sealed_head ? *record.sealed_head : layout_.head, "the head");
    check_text(record.tail_offset, record.tail, "the tail");
    for (std::size_t i = 0; i < layout_.payloads.size(); ++i)
      if (const std::uint64_t size = layout_.payloads[i].preamble_size; size > 0)
        check_text(record.stored[i].offset - size, layout_.make_preamble(i, record.stored[i]), "what precedes a part");
    check_tensors();
    divide();
  }

  std::uint64_t tasks() const noexcept { return tasks_.size(); }

  void perform(std::uint64_t i) try {
    const Task& task = tasks_[base::to_size(i)];
    switch (task.kind) {
      case Task::Kind::prefix: prefix(task.offset); break;
      case Task::Kind::batch: batch(task.first, task.last); break;
      case Task::Kind::segment: segment(task.first, task.offset); break;
      case Task::Kind::stream: stream(task.first); break;
    }
  } catch (const Error& error) {
    if (error.kind() == Kind::io) throw;
    differs(error.finding().message);
  }

 private:
  struct Task {
    enum class Kind : std::uint8_t { stream, prefix, batch, segment } kind;
    std::size_t first = 0, last = 0;  // payloads
    std::uint64_t offset = 0;
  };

  void reopen() {
    if (source_->size() != record_.size)
      differs("the file has " + std::to_string(source_->size()) + " bytes instead of " + std::to_string(record_.size));
    OpenOptions options;
    options.format = expected_.format;
    if (layout_.companion && layout_.companion->text) {
      const auto text = std::make_shared<const std::string>(layout_.companion->text("output"));
      options.sidecar = memory_source({std::as_bytes(std::span(*text)), text}, "<companion>");
    }
    try {
      model_ = open(source_, quiet_, options);
    } catch (const Error& error) {
      if (error.kind() == Kind::io) throw;
      differs(error.finding().message + " (" + error.finding().rule + ")");
    }
  }

  void check_text(std::uint64_t offset, std::string_view expected, const char* what) {
    io::read_pieces(*source_, offset, offset + expected.size(), [&](std::uint64_t, std::span<const std::byte> bytes) {
      if (!std::ranges::equal(bytes, std::as_bytes(std::span(expected.substr(0, bytes.size()))))) differs(what);
      expected.remove_prefix(bytes.size());
      return true;
    });
  }

  static std::string subject(std::string_view name) { return "tensor " + core::quoted(name); }

  void check_tensors() {
    const std::uint64_t expected = layout_.tensors.size() + expected_.kept_tensors;
    if (model_.size() != expected)
      differs("the file has " + std::to_string(model_.size()) + " tensors instead of " + std::to_string(expected));
    opened_.reserve(layout_.tensors.size());
    for (std::uint32_t i = 0; i < layout_.tensors.size(); ++i) opened_.push_back(check_tensor(i));
    std::vector<std::uint32_t> parts(layout_.tensors.size(), 0);
    for (std::size_t i = 0; i < layout_.payloads.size(); ++i) {
      if (layout_.payloads[i].shared) continue;
      check_part(i);
      ++parts[layout_.payloads[i].out_tensor];
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (parts[i] + layout_.tensors[i].shared_parts != opened_[i].part_count())
        differs(subject(opened_[i].name()) + " has another number of parts");
  }

  Tensor check_tensor(std::uint32_t i) {
    const core::OutTensor& out = layout_.tensors[i];
    // Tensors in the file are nearly always in the layout's order, so try the next one first.
    const std::uint32_t guess = i + expected_.kept_tensors;
    std::optional<Tensor> found;
    if (model_.name(guess) == out.name) found = model_[guess];
    if (!found) found = model_.find(out.name);
    if (!found) differs(subject(out.name) + " is missing");
    if (found->layout() != out.layout)
      differs(subject(out.name) + " has the layout " + std::string(found->layout_name()));
    if (found->dtype() != (out.opaque ? DType::unknown : out.dtype))
      differs(subject(out.name) + " has the dtype " + std::string(name(found->dtype())));
    if (out.same_shape && (!found->has_shape() || !std::ranges::equal(found->shape(), out.from.shape())))
      differs(subject(out.name) + " has another shape");
    if (out.view) check_view(out, *found);
    return *found;
  }

  void check_view(const core::OutTensor& out, const Tensor& found) const {
    const Part part = found.main();
    const auto extent = part.extent();
    if (!extent || extent->offset != record_.stored[out.view->payload].offset + out.view->offset ||
        extent->length != out.view->length)
      differs(subject(out.name) + " has another place");
    if (!std::ranges::equal(part.strides(), out.view->strides)) differs(subject(out.name) + " has other strides");
  }

  Part opened_part(std::size_t payload) const {
    const Payload& p = layout_.payloads[payload];
    return *opened_[p.out_tensor].part(p.role);
  }

  void check_part(std::size_t i) {
    const Payload& p = layout_.payloads[i];
    const std::string_view role = p.role;
    const auto wrong = [&](const char* what) {
      differs(subject(opened_[p.out_tensor].name()) + ", part " + core::quoted(role) + ": " + what);
    };
    const auto part = opened_[p.out_tensor].part(role);
    if (!part) return wrong("missing");
    const bool opaque = layout_.tensors[p.out_tensor].opaque;
    if (part->dtype() != (opaque ? DType::unknown : p.dtype)) return wrong("another dtype");
    if (part->encoding() != p.encoding) return wrong("another encoding");
    if (part->size() != p.logical_size) return wrong("another size");
    const auto extent = part->extent();
    if (!extent || extent->offset != record_.stored[i].offset || extent->length != record_.stored[i].length)
      return wrong("another place");
  }

  // True when the hashes taken while writing cover the bytes as stored in the file.
  bool hashed_as_stored(const Payload& p) const {
    return p.form == Payload::Form::stored || p.shared ||
           (layout_.tensors[p.out_tensor].opaque && p.encoding == Encoding::raw);
  }

  void divide() {
    std::vector<Task> others;
    for (std::uint64_t offset = 0; offset < layout_.prefix_length; offset += kSegment)
      others.push_back({Task::Kind::prefix, 0, 0, offset});
    for (std::size_t i = 0; i < layout_.payloads.size(); ++i) {
      const Payload& p = layout_.payloads[i];
      const core::Stored& stored = record_.stored[i];
      if (!hashed_as_stored(p) && !core::is_direct(opened_part(i))) {
        tasks_.push_back({Task::Kind::stream, i, i + 1, 0});
      } else if (stored.length > kSmall) {
        for (std::uint64_t offset = 0; offset < stored.length; offset += kSegment)
          others.push_back({Task::Kind::segment, i, i + 1, offset});
      } else if (!others.empty() && others.back().kind == Task::Kind::batch && others.back().last == i &&
                 stored.offset + stored.length - record_.stored[others.back().first].offset <= kSegment) {
        others.back().last = i + 1;
      } else {
        others.push_back({Task::Kind::batch, i, i + 1, 0});
      }
    }
    // Tasks that cannot be split start first.
    std::stable_sort(tasks_.begin(), tasks_.end(), [&](const Task& a, const Task& b) {
      return layout_.payloads[a.first].logical_size > layout_.payloads[b.first].logical_size;
    });
    tasks_.insert(tasks_.end(), others.begin(), others.end());
  }

  [[noreturn]] void bytes_differ(std::size_t payload) const {
    const Payload& p = layout_.payloads[payload];
    differs(subject(opened_[p.out_tensor].name()) + ", part " + core::quoted(p.role) + ": other bytes");
  }

  void prefix(std::uint64_t offset) {
    const core::BufferPool::Lease lease(buffers_);
    const auto bytes = lease.span().first(static_cast<std::size_t>(std::min(kSegment, layout_.prefix_length - offset)));
    source_->read_at(offset, bytes);
    if (codecs::xxh3_128(bytes) != record_.prefix_hashes[base::to_size(offset / kSegment)])
      differs("the bytes that were there before, at offset " + std::to_string(offset));
    progress_.add(bytes.size());
  }

  void segment(std::size_t i, std::uint64_t offset) {
    const core::BufferPool::Lease lease(buffers_);
    const core::Stored& stored = record_.stored[i];
    const auto bytes = lease.span().first(static_cast<std::size_t>(std::min(kSegment, stored.length - offset)));
    if (hashed_as_stored(layout_.payloads[i])) {
      source_->read_at(stored.offset + offset, bytes);
    } else {
      core::read_direct(opened_part(i), offset, bytes);
    }
    if (codecs::xxh3_128(bytes) != record_.hashes_of(i)[base::to_size(offset / kSegment)]) bytes_differ(i);
    progress_.add(bytes.size());
  }

  void batch(std::size_t first, std::size_t last) {
    const core::BufferPool::Lease lease(buffers_);
    std::vector<core::PartRead> reads;
    std::size_t used = 0;
    const auto out_of = [&](std::size_t i) {
      return lease.span().subspan(base::to_size(record_.stored[i].offset - record_.stored[first].offset),
                                  base::to_size(record_.stored[i].length));
    };
    for (std::size_t i = first; i < last; ++i) {
      used += out_of(i).size();
      if (!hashed_as_stored(layout_.payloads[i])) {
        reads.push_back({opened_part(i), out_of(i)});
      } else if (!out_of(i).empty()) {
        source_->read_at(record_.stored[i].offset, out_of(i));
      }
    }
    core::read_direct(reads);
    for (std::size_t i = first; i < last; ++i)
      if (!out_of(i).empty() && codecs::xxh3_128(out_of(i)) != record_.hashes_of(i)[0]) bytes_differ(i);
    progress_.add(used);
  }

  void stream(std::size_t i) {
    const auto expected = record_.hashes_of(i);
    std::vector<codecs::Hash128> hashes(expected.size());
    SegmentHasher hasher(layout_.payloads[i].logical_size, hashes);
    opened_part(i).stream(quiet_, [&](std::span<const std::byte> piece) {
      if (!hasher.update(piece)) bytes_differ(i);
      progress_.add(piece.size());
      return true;
    });
    if (hasher.left() != 0 || !std::ranges::equal(hashes, expected)) bytes_differ(i);
  }

  const Expected expected_;
  const core::WriteLayout& layout_;
  const Record& record_;
  const std::shared_ptr<const Source> source_;
  Context quiet_;
  core::Progress& progress_;
  Model model_;
  std::vector<Tensor> opened_;  // of layout_.tensors
  std::vector<Task> tasks_;
  core::BufferPool buffers_{base::to_size(kSegment)};
};

}  // namespace

void sync_and_read_back(const Expected& expected, const Record& record, io::AtomicFile& file, const Context& context,
                        core::Progress& progress) {
  std::shared_ptr<const Source> source = file.reopen();
  const bool synced = source->size() != record.size;
  if (synced) {  // sync() also truncates the file where an encoding needed less than was reserved
    file.sync(record.size);
    source = file.reopen();
  }
  ReadBack read_back(expected, record, std::move(source), progress);
  // Reading uses the processor and the page cache, syncing the disk: run both in parallel.
  core::executor_of(context).for_each(read_back.tasks() + 1, [&](std::uint64_t i) {
    if (i > 0) {
      read_back.perform(i - 1);
    } else if (!synced) {
      file.sync(record.size);
    }
  });
}

}  // namespace weighbridge::convert
