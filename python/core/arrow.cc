// SPDX-License-Identifier: Apache-2.0
// Texts and vectors by the Arrow C data interface (arrow.apache.org/docs/format/CDataInterface.html). Owns its
// structures, readers of columns of text, and the column of vectors.
#include <algorithm>
#include <cstring>

#include "core.h"

// As the specification has them.
extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};
struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
struct ArrowArrayStream {
  int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
  int (*get_next)(ArrowArrayStream*, ArrowArray*);
  const char* (*get_last_error)(ArrowArrayStream*);
  void (*release)(ArrowArrayStream*);
  void* private_data;
};
}

namespace weighbridge::python {
namespace {

constexpr std::int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

// A structure of Arrow that is released at the end.
template <class T> struct Released : T {
  Released() : T{} {}
  ~Released() {
    if (this->release) this->release(this);
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;
};

bool bit(const void* bits, std::int64_t i) {
  const auto byte = static_cast<const std::uint8_t*>(bits)[i / 8];
  return (byte >> (i % 8)) & 1;
}

// A chunk's texts, and which of them are null.
struct Column {
  std::vector<std::string_view> texts;  // empty where null
  std::vector<std::uint8_t> valid;      // a bitmap, empty: all are
  std::int64_t nulls = 0;
};

template <class Offset> std::string_view text_by_offsets(const ArrowArray& array, std::int64_t i) {
  const auto* const offsets = static_cast<const Offset*>(array.buffers[1]);
  const Offset first = offsets[i], end = offsets[i + 1];
  if (first < 0 || end < first) throw nb::value_error("the offsets of the column of texts do not ascend");
  return {static_cast<const char*>(array.buffers[2]) + first, static_cast<std::size_t>(end - first)};
}

// Of string_view: 16 bytes for each text, which hold it, or its size, 4 bytes of it, and a buffer's number and offset.
std::string_view text_by_view(const ArrowArray& array, std::int64_t i) {
  const auto* const at = static_cast<const char*>(array.buffers[1]) + i * 16;
  std::int32_t fields[4];
  std::memcpy(fields, at, sizeof fields);
  const auto [size, prefix, buffer, offset] = fields;
  if (size < 0) throw nb::value_error("a text of the column has a negative size");
  if (size <= 12) return {at + 4, static_cast<std::size_t>(size)};
  const std::int64_t count = array.n_buffers - 3;  // without the bitmap, the views and the list of sizes
  if (buffer < 0 || buffer >= count || offset < 0) throw nb::value_error("a text of the column is in no buffer");
  const auto* const sizes = static_cast<const std::int64_t*>(array.buffers[array.n_buffers - 1]);
  if (offset > sizes[buffer] - size) throw nb::value_error("a text of the column ends outside its buffer");
  return {static_cast<const char*>(array.buffers[2 + buffer]) + offset, static_cast<std::size_t>(size)};
}

using TextReader = std::string_view (*)(const ArrowArray&, std::int64_t);
TextReader reader_of(const ArrowSchema& schema) {
  const std::string_view format = schema.format ? schema.format : "";
  if (schema.dictionary)
    throw nb::type_error("the column is dictionary-encoded: decode it first (pyarrow: column.dictionary_decode())");
  if (format == "u") return text_by_offsets<std::int32_t>;
  if (format == "U") return text_by_offsets<std::int64_t>;
  if (format == "vu") return text_by_view;
  const std::string hint = format == "+s" ? "a table: give one column of it" : "of type '" + std::string(format) + "'";
  throw nb::type_error(
      shown("a column of texts (utf8, large_utf8 or string_view) is expected; this is " + hint).c_str());
}

Column column_of(const ArrowArray& array, TextReader reader) {
  Column out;
  if (array.length < 0 || array.offset < 0 || array.n_buffers < 2)
    throw nb::value_error("the column of texts has a negative length or no buffers");
  const auto count = static_cast<std::size_t>(array.length);
  out.texts.resize(count);
  const bool any_null = array.null_count != 0 && array.buffers[0] != nullptr;
  if (any_null) out.valid.assign((count + 7) / 8, 0);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t at = array.offset + static_cast<std::int64_t>(i);
    if (any_null && !bit(array.buffers[0], at)) {
      ++out.nulls;
      continue;
    }
    if (any_null) out.valid[i / 8] = static_cast<std::uint8_t>(out.valid[i / 8] | 1U << (i % 8));
    out.texts[i] = reader(array, at);
  }
  if (out.nulls == 0) out.valid.clear();
  return out;
}

// The vectors of a chunk: FixedSizeList<float32> with the bitmap of the texts.
struct Chunk {
  std::vector<float> values;
  std::vector<std::uint8_t> valid;  // empty: no text is null
  std::int64_t length = 0, nulls = 0;
};

// A structure for a consumer with all that it points to. Deletes itself when the consumer releases it.
struct ArrayHeld {
  std::shared_ptr<const Chunk> chunk;
  const void* list_buffers[1] = {nullptr};
  const void* value_buffers[2] = {nullptr, nullptr};
  ArrowArray child{};
  ArrowArray* children[1] = {&child};
};
struct SchemaHeld {
  std::string format, metadata;
  ArrowSchema child{};
  ArrowSchema* children[1] = {&child};
};
template <class Held, class T> void release_held(T* top) {
  auto* const held = static_cast<Held*>(top->private_data);
  if (held->child.release) held->child.release(&held->child);
  top->release = nullptr;
  delete held;
}
template <class T> void release_child(T* child) { child->release = nullptr; }

void make_array(const std::shared_ptr<const Chunk>& chunk, ArrowArray* out) {
  auto held = std::make_unique<ArrayHeld>();
  held->chunk = chunk;
  held->list_buffers[0] = chunk->valid.empty() ? nullptr : chunk->valid.data();
  held->value_buffers[1] = chunk->values.data();
  held->child = {.length = static_cast<std::int64_t>(chunk->values.size()),
                 .null_count = 0,
                 .offset = 0,
                 .n_buffers = 2,
                 .n_children = 0,
                 .buffers = held->value_buffers,
                 .children = nullptr,
                 .dictionary = nullptr,
                 .release = release_child<ArrowArray>,
                 .private_data = nullptr};
  *out = {.length = chunk->length,
          .null_count = chunk->nulls,
          .offset = 0,
          .n_buffers = 1,
          .n_children = 1,
          .buffers = held->list_buffers,
          .children = held->children,
          .dictionary = nullptr,
          .release = release_held<ArrayHeld, ArrowArray>,
          .private_data = held.get()};
  held.release();
}

// The vectors of all chunks, and their type. Gives each consumer structures of its own over the same memory.
struct Vectors {
  std::vector<std::shared_ptr<const Chunk>> chunks;
  std::uint64_t width = 0;
  std::vector<std::pair<std::string, std::string>> facts;  // which weights made them, and how

  std::int64_t size() const {
    std::int64_t out = 0;
    for (const auto& chunk : chunks) out += chunk->length;
    return out;
  }
  // Its metadata is int32 pairs, and for each of both an int32 size and the text.
  void make_schema(ArrowSchema* out) const {
    auto held = std::make_unique<SchemaHeld>();
    held->format = "+w:" + std::to_string(width);
    const auto append = [&](std::int32_t number) {
      held->metadata.append(reinterpret_cast<const char*>(&number), sizeof number);
    };
    append(static_cast<std::int32_t>(facts.size()));
    for (const auto& [key, value] : facts) {
      for (const std::string* const text : {&key, &value}) {
        append(static_cast<std::int32_t>(text->size()));
        held->metadata.append(*text);
      }
    }
    held->child = {.format = "f",
                   .name = "item",
                   .metadata = nullptr,
                   .flags = kNullable,
                   .n_children = 0,
                   .children = nullptr,
                   .dictionary = nullptr,
                   .release = release_child<ArrowSchema>,
                   .private_data = nullptr};
    *out = {.format = held->format.c_str(),
            .name = "",
            .metadata = held->metadata.data(),
            .flags = kNullable,
            .n_children = 1,
            .children = held->children,
            .dictionary = nullptr,
            .release = release_held<SchemaHeld, ArrowSchema>,
            .private_data = held.get()};
    held.release();
  }
};

// The chunks one after the other. A consumer may call it without the GIL.
struct StreamHeld {
  Vectors vectors;
  std::size_t next = 0;
};
void make_stream(const Vectors& vectors, ArrowArrayStream* out) {
  const auto held = [](ArrowArrayStream* stream) { return static_cast<StreamHeld*>(stream->private_data); };
  static constexpr auto of = held;
  *out = {.get_schema =
              [](ArrowArrayStream* stream, ArrowSchema* schema) {
                of(stream)->vectors.make_schema(schema);
                return 0;
              },
          .get_next =
              [](ArrowArrayStream* stream, ArrowArray* array) {
                StreamHeld& self = *of(stream);
                if (self.next == self.vectors.chunks.size())
                  *array = {};
                else
                  make_array(self.vectors.chunks[self.next++], array);
                return 0;
              },
          .get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; },
          .release =
              [](ArrowArrayStream* stream) {
                delete of(stream);
                stream->release = nullptr;
              },
          .private_data = new StreamHeld{vectors}};
}

// A capsule that owns a structure, and releases it unless a consumer has taken it.
template <class T, class Make> nb::object to_capsule(const char* name, Make make) {
  auto made = std::make_unique<T>();
  make(made.get());
  PyObject* const out = PyCapsule_New(made.get(), name, [](PyObject* capsule) {
    auto* const held = static_cast<T*>(PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule)));
    if (held->release) held->release(held);
    delete held;
  });
  if (!out) throw nb::python_error();
  made.release();
  return nb::steal(out);
}
nb::object schema_capsule(const Vectors& vectors) {
  return to_capsule<ArrowSchema>("arrow_schema", [&](ArrowSchema* out) { vectors.make_schema(out); });
}

// Null texts take no part; their vectors are zeros.
std::shared_ptr<const Chunk> embed_chunk(const Embedder& embedder, const ArrowArray& array, TextReader reader,
                                         const Settings& settings, std::string_view prompt) {
  Column column = column_of(array, reader);
  const std::size_t width = embedder.dimension();
  auto out = std::make_shared<Chunk>();
  out->values.resize(column.texts.size() * width);
  out->length = array.length;
  out->nulls = column.nulls;
  if (column.nulls == 0) {
    embed_texts(embedder, column.texts, prompt, out->values, settings);
    return out;
  }
  std::vector<std::string_view> texts;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < column.texts.size(); ++i) {
    if (!bit(column.valid.data(), static_cast<std::int64_t>(i))) continue;
    texts.push_back(column.texts[i]);
    places.push_back(i);
  }
  std::vector<float> some(texts.size() * width);
  embed_texts(embedder, texts, prompt, some, settings);
  for (std::size_t i = 0; i < places.size(); ++i)
    std::copy_n(some.data() + i * width, width, out->values.data() + places[i] * width);
  out->valid = std::move(column.valid);
  return out;
}

template <class T> T* pointer_of(nb::handle capsule, const char* name) {
  void* const out = PyCapsule_GetPointer(capsule.ptr(), name);
  if (!out) throw nb::python_error();
  if (!static_cast<T*>(out)->release) throw nb::value_error("the column was taken by another consumer already");
  return static_cast<T*>(out);
}

Vectors embed_arrow(const Embedder& embedder, nb::handle texts,
                    const std::vector<std::pair<std::string, std::string>>& facts, const Settings& settings,
                    std::string_view prompt) {
  Vectors out{.chunks = {}, .width = embedder.dimension(), .facts = facts};
  if (nb::hasattr(texts, "__arrow_c_array__")) {
    nb::tuple pair;
    if (!nb::try_cast(texts.attr("__arrow_c_array__")(), pair) || pair.size() != 2)
      throw nb::type_error("__arrow_c_array__() returned something other than two capsules");
    const TextReader reader = reader_of(*pointer_of<ArrowSchema>(pair[0], "arrow_schema"));
    out.chunks.push_back(
        embed_chunk(embedder, *pointer_of<ArrowArray>(pair[1], "arrow_array"), reader, settings, prompt));
    return out;
  }
  if (!nb::hasattr(texts, "__arrow_c_stream__"))
    throw nb::type_error("an array or a stream of Arrow is expected (__arrow_c_array__ or __arrow_c_stream__)");
  const nb::object capsule = texts.attr("__arrow_c_stream__")();
  auto* const stream = pointer_of<ArrowArrayStream>(capsule, "arrow_array_stream");
  const auto request = [&](auto call, auto* into) {
    int failed = 0;
    {
      const WithoutGil released;
      failed = call(stream, into);
    }
    if (failed == 0) return;
    const char* const why = stream->get_last_error(stream);
    wrong_value(why ? why : "the stream of texts failed");
  };
  Released<ArrowSchema> schema;
  request(stream->get_schema, static_cast<ArrowSchema*>(&schema));
  const TextReader reader = reader_of(schema);
  for (;;) {
    Released<ArrowArray> array;
    request(stream->get_next, static_cast<ArrowArray*>(&array));
    if (!array.release) return out;
    out.chunks.push_back(embed_chunk(embedder, array, reader, settings, prompt));
  }
}

}  // namespace

void define_arrow(nb::module_& m) {
  nb::class_<Vectors>(m, "ArrowVectors")
      .def("__len__", &Vectors::size)
      .def_prop_ro("dimension", [](const Vectors& self) { return self.width; })
      .def("__arrow_c_schema__", &schema_capsule)
      .def(
          "__arrow_c_array__",
          [](const Vectors& self, nb::handle) {
            if (self.chunks.size() > 1)
              throw nb::value_error("the vectors are in several chunks: import them as a stream");
            const auto chunk = self.chunks.empty() ? std::make_shared<const Chunk>() : self.chunks[0];
            return nb::make_tuple(schema_capsule(self), to_capsule<ArrowArray>("arrow_array", [&](ArrowArray* out) {
                                    make_array(chunk, out);
                                  }));
          },
          nb::arg("requested_schema").none() = nb::none())
      .def(
          "__arrow_c_stream__",
          [](const Vectors& self, nb::handle) {
            return to_capsule<ArrowArrayStream>("arrow_array_stream",
                                                [&](ArrowArrayStream* out) { make_stream(self, out); });
          },
          nb::arg("requested_schema").none() = nb::none());
  m.def("embed_arrow", &embed_arrow);
}

}  // namespace weighbridge::python
