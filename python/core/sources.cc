// SPDX-License-Identifier: Apache-2.0
// What a user opens: paths, buffers, and objects of Python that read ranges.
#include <cstring>
#include <vector>

#include "core.h"

namespace weighbridge::python {
namespace {

// A buffer (bytes, bytearray, mmap, array) as memory, which it keeps alive.
class Buffer {
 public:
  explicit Buffer(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    if (view_.buf != nullptr || view_.len == 0) return;
    PyBuffer_Release(&view_);
    throw nb::value_error("a buffer without memory cannot be read: its address is null");
  }
  ~Buffer() {
    if (!nb::is_alive()) return;
    const WithGil acquired;
    PyBuffer_Release(&view_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::span<const std::byte> bytes() const noexcept {
    return {static_cast<const std::byte*>(view_.buf), static_cast<std::size_t>(view_.len)};
  }

 private:
  Py_buffer view_{};
};

// The text of an object, whatever it is made of; "?" if it cannot be made.
std::string utf8(nb::handle object) {
  const auto text = nb::steal(PyObject_Str(object.ptr()));
  const auto bytes =
      nb::steal(text.is_valid() ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) {
    PyErr_Clear();
    return "?";
  }
  return {data, static_cast<std::size_t>(size)};
}

// weighbridge._sources.Reader: name, size, gap (ReadCost), read(ranges) -> list of bytes; a range is (offset, length).
// Called from any thread.
class Ranges final : public Source {
 public:
  explicit Ranges(nb::handle reader)
      : reader_(new nb::object(nb::borrow(reader))),
        name_(utf8(reader.attr("name"))),
        size_(nb::cast<std::uint64_t>(reader.attr("size"))),
        gap_(nb::cast<std::uint64_t>(reader.attr("gap"))) {}
  ~Ranges() override {
    if (!nb::is_alive()) return;
    const WithGil acquired;
    delete reader_;
  }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return name_; }
  ReadCost cost() const noexcept override { return {.gap = gap_}; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    const ReadRange range{offset, out};
    read({&range, 1});
  }
  void read(std::span<const ReadRange> all) const override {
    std::vector<ReadRange> ranges(all.begin(), all.end());
    std::erase_if(ranges, [](const ReadRange& range) { return range.out.empty(); });
    if (ranges.empty()) return;
    std::string why;
    std::size_t done = 0;
    {
      const WithGil acquired;
      try {
        nb::list wanted;
        for (const ReadRange& range : ranges) wanted.append(nb::make_tuple(range.offset, range.out.size()));
        const nb::object read = reader_->attr("read")(wanted);
        for (; done < ranges.size() && why.empty(); ++done) {
          const nb::object got = read[done];
          const Buffer buffer(got);
          const std::span<std::byte> out = ranges[done].out;
          if (buffer.bytes().size() != out.size())
            why = "gave " + std::to_string(buffer.bytes().size()) + " bytes of " + std::to_string(out.size());
          else
            std::memcpy(out.data(), buffer.bytes().data(), out.size());
        }
        if (why.empty()) return;
        --done;
      } catch (nb::python_error& error) {
        if (!PyErr_GivenExceptionMatches(error.type().ptr(), PyExc_Exception)) throw;  // KeyboardInterrupt
        why = utf8(error.type().attr("__name__")) + ": " + utf8(error.value());
      }
    }
    Finding finding;
    finding.rule = "io/read";
    finding.kind = Kind::io;
    finding.file.name = name_;
    finding.offset = ranges[done].offset;
    finding.message = "cannot be read: " + why;
    throw Error(std::move(finding));
  }

 private:
  nb::object* reader_;  // deleted with the GIL
  const std::string name_;
  const std::uint64_t size_, gap_;
};

}  // namespace

Input to_input(nb::handle object) {
  if (nb::hasattr(object, "gap")) return {{}, std::make_shared<Ranges>(object)};
  if (PyUnicode_Check(object.ptr()) || nb::hasattr(object, "__fspath__")) {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(object.ptr(), &encoded) == 0) throw nb::python_error();
    const auto path = nb::steal<nb::bytes>(encoded);
    return {std::string(path.c_str(), path.size()), nullptr};
  }
  auto buffer = std::make_shared<Buffer>(object);
  return {{}, memory_source({buffer->bytes(), buffer})};
}

std::string to_path(nb::handle object) {
  if (!PyUnicode_Check(object.ptr()) && !nb::hasattr(object, "__fspath__")) wrong_type("path", "a path", object);
  return to_input(object).path;
}

}  // namespace weighbridge::python
