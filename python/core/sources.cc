// SPDX-License-Identifier: Apache-2.0
// What a user opens: paths, buffers, and objects of Python that read ranges.
#include <cstring>

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

// weighbridge._sources.Reader: name, size, read_at(offset, length) -> bytes. Called from any thread.
class Ranges final : public Source {
 public:
  explicit Ranges(nb::handle reader)
      : reader_(new nb::object(nb::borrow(reader))),
        name_(utf8(reader.attr("name"))),
        size_(nb::cast<std::uint64_t>(reader.attr("size"))) {}
  ~Ranges() override {
    if (!nb::is_alive()) return;
    const WithGil acquired;
    delete reader_;
  }
  Ranges(const Ranges&) = delete;
  Ranges& operator=(const Ranges&) = delete;

  std::uint64_t size() const noexcept override { return size_; }
  std::string_view name() const noexcept override { return name_; }
  ReadCost cost() const noexcept override { return {.gap = 1U << 20, .round_trip = true}; }
  void read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    std::string why;
    {
      const WithGil acquired;
      try {
        const nb::object got = reader_->attr("read_at")(offset, out.size());
        const Buffer buffer(got);
        if (buffer.bytes().size() == out.size()) {
          std::memcpy(out.data(), buffer.bytes().data(), out.size());
          return;
        }
        why = "gave " + std::to_string(buffer.bytes().size()) + " bytes of " + std::to_string(out.size());
      } catch (nb::python_error& error) {
        if (!PyErr_GivenExceptionMatches(error.type().ptr(), PyExc_Exception)) throw;  // KeyboardInterrupt
        why = utf8(error.type().attr("__name__")) + ": " + utf8(error.value());
      }
    }
    Finding finding;
    finding.rule = "io/read";
    finding.kind = Kind::io;
    finding.file.name = name_;
    finding.offset = offset;
    finding.message = "cannot be read: " + why;
    throw Error(std::move(finding));
  }

 private:
  nb::object* reader_;  // deleted with the GIL
  const std::string name_;
  const std::uint64_t size_;
};

}  // namespace

Input to_input(nb::handle object) {
  if (nb::hasattr(object, "read_at")) return {{}, std::make_shared<Ranges>(object)};
  if (PyUnicode_Check(object.ptr()) || nb::hasattr(object, "__fspath__")) {
    PyObject* encoded = nullptr;
    if (PyUnicode_FSConverter(object.ptr(), &encoded) == 0) throw nb::python_error();
    const auto path = nb::steal<nb::bytes>(encoded);
    return {std::string(path.c_str(), path.size()), nullptr};
  }
  auto buffer = std::make_shared<Buffer>(object);
  return {{}, memory_source({buffer->bytes(), buffer})};
}

}  // namespace weighbridge::python
