// SPDX-License-Identifier: Apache-2.0
// Embedders and generators.
#include <algorithm>
#include <numeric>

#include "core.h"

namespace weighbridge::python {
namespace {

// Texts of Python as UTF-8, alive as long as their list.
std::vector<std::string_view> views_of(nb::handle texts) {
  std::vector<std::string_view> out;
  for (const nb::handle item : texts) {
    Py_ssize_t size = 0;
    const char* const data = PyUnicode_AsUTF8AndSize(item.ptr(), &size);
    if (!data) throw nb::python_error();
    out.emplace_back(data, static_cast<std::size_t>(size));
  }
  return out;
}

// A generated text, one token at a time. Keeps its model alive.
struct Stream {
  std::shared_ptr<const Generator> generator;
  std::unique_ptr<Session> session;
  std::unique_ptr<Generation> generation;
};

nb::list to_list(const std::vector<std::string>& texts) {
  nb::list out;
  for (const std::string& each : texts) out.append(text(each));
  return out;
}

nb::dict to_dict(const Generated& made) {
  nb::dict out;
  out["text"] = text(made.text);
  out["tokens"] = nb::cast(made.tokens);
  out["prompt_tokens"] = made.prompt_tokens;
  out["stopped"] = text(name(made.stopped));
  out["seconds"] = made.seconds;
  return out;
}

}  // namespace

std::vector<Embedded> embed_texts(const Embedder& embedder, std::span<const std::string_view> texts,
                                  std::optional<std::string_view> prompt, std::span<float> out,
                                  const Settings& settings) {
  constexpr std::size_t kBytesAtOnce = 8192;  // less than 200 ms, so that a signal is not kept waiting
  const std::size_t width = embedder.dimension();
  std::vector<Embedded> what(texts.size());
  const auto cost = [](std::size_t sum, std::string_view text) { return sum + text.size() + 32; };
  if (std::accumulate(texts.begin(), texts.end(), std::size_t{0}, cost) <= kBytesAtOnce &&
      settings.progress.is_none()) {
    const WithoutGil released;
    embedder.embed(texts, out, what, prompt);
    return what;
  }
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return texts[a].size() > texts[b].size(); });
  run_job(settings, [&](const Context& context) {
    std::vector<std::string_view> some;
    std::vector<float> vectors;
    std::vector<Embedded> found;
    for (std::size_t i = 0; i < texts.size(); i += some.size()) {
      if (!context.progress(i, texts.size())) throw Cancelled();
      std::size_t bytes = 0;
      some.clear();
      for (std::size_t k = i; k < texts.size(); ++k) {
        const std::string_view text = texts[order[k]];
        bytes = cost(bytes, text);
        if (!some.empty() && bytes > kBytesAtOnce) break;
        some.push_back(text);
      }
      vectors.resize(some.size() * width);
      found.resize(some.size());
      embedder.embed(some, vectors, found, prompt);
      for (std::size_t k = 0; k < some.size(); ++k) {
        std::copy_n(vectors.data() + k * width, width, out.data() + order[i + k] * width);
        what[order[i + k]] = found[k];
      }
    }
    context.progress(texts.size(), texts.size());
  });
  return what;
}

void define_runtimes(nb::module_& m) {
  nb::class_<Embedder>(m, "Embedder")
      .def("__init__",
           [](Embedder* self, const Model& model, unsigned threads, nb::handle options) {
             EmbedOptions made{.threads = threads};
             set_options(made, OptionOf::embed, options);
             const WithoutGil released;
             new (self) Embedder(model, made);
           })
      .def_prop_ro("dimension", &Embedder::dimension)
      .def_prop_ro("max_length", &Embedder::max_length)
      .def_prop_ro("threads", &Embedder::threads)
      .def_prop_ro("normalize", &Embedder::normalize)
      .def_prop_ro("pooling", [](const Embedder& e) { return text(e.poolings()); })
      .def_prop_ro("precision", [](const Embedder& e) { return text(name(e.precision())); })
      .def_prop_ro("prompts",
                   [](const Embedder& e) {
                     nb::dict out;
                     for (const auto& [name, prompt] : e.prompts()) out[text(name)] = text(prompt);
                     return out;
                   })
      .def_prop_ro("prompt", [](const Embedder& e) { return text(e.prompt()); })
      .def_prop_ro("notes", [](const Embedder& e) { return to_list(e.notes()); })
      .def("digests",
           [](const Embedder& self, const Settings& settings) {
             const EmbedDigests made = run(settings, [&](const Context& context) { return self.digests(context); });
             return nb::make_tuple(text(made.model.text()), text(made.kind));
           })
      // Writes the vectors into a writable float32 array [texts, dimension]; returns the number of tokens of each.
      .def("embed",
           [](const Embedder& self, nb::list texts, nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu> out,
              const Settings& settings, std::string_view prompt) {
             const std::vector<std::string_view> views = views_of(texts);
             if (out.shape(0) != views.size() || out.shape(1) != self.dimension())
               throw nb::value_error("out has another shape than the texts' vectors");
             nb::list counts;
             for (const Embedded& one : embed_texts(self, views, prompt, {out.data(), out.size()}, settings))
               counts.append(one.tokens);
             return counts;
           })
      .def("tokenize", [](const Embedder& self, std::string_view one, std::uint64_t max_length) {
        const WordPiece* const tokenizer = self.tokenizer();
        if (!tokenizer) throw nb::value_error("the model has no vocabulary");
        return tokenizer->encode(one, {.max_length = max_length});
      });

  nb::class_<TextTokenizer>(m, "Tokenizer")
      .def(
          "__init__",
          [](TextTokenizer* self, const Model& model, nb::handle words, bool special, std::uint64_t max_length,
             const std::vector<std::string>& ignore) {
            const auto file = words.is_none() ? std::nullopt : std::optional<Input>(to_input(words));
            TextTokenizerOptions options{.special = special, .max_length = max_length, .ignore_settings = ignore};
            run(Settings{}, [&](const Context& context) {
              const auto own = file ? std::optional(WordPiece::vocabulary(
                                          file->source ? *file->source : *open_file(file->path), context.limits))
                                    : std::nullopt;
              if (own) options.vocabulary = &*own;
              return new (self) TextTokenizer(model, options);
            });
          },
          nb::arg("model"), nb::arg("vocabulary").none(), nb::arg("special"), nb::arg("max_length"), nb::arg("ignore"))
      .def_prop_ro("size", &TextTokenizer::size)
      .def_prop_ro("notes", [](const TextTokenizer& t) { return to_list(t.notes()); })
      // [(id, token)]
      .def("encode",
           [](const TextTokenizer& self, std::string_view one) {
             TokenizedText made;
             {
               const WithoutGil released;
               made = self(one);
             }
             nb::list out;
             for (std::size_t i = 0; i < made.ids.size(); ++i)
               out.append(nb::make_tuple(made.ids[i], text(made.tokens[i])));
             return out;
           })
      .def("decode", [](const TextTokenizer& self, const std::vector<std::uint32_t>& ids) {
        const std::string out = self.decode(ids);
        return nb::bytes(out.data(), out.size());
      });

  nb::class_<Stream>(m, "Stream")
      .def("step",
           [](Stream& self) {
             const WithoutGil released;
             return self.generation->step();
           })
      .def("cancel", [](Stream& self) { self.generation->cancel(); })
      .def("result", [](const Stream& self) { return to_dict(self.generation->result()); })
      .def("text_from", [](const Stream& self, std::size_t bytes) {
        const std::string& all = self.generation->result().text;
        return nb::bytes(all.data() + std::min(bytes, all.size()), all.size() - std::min(bytes, all.size()));
      });

  struct Held {
    std::shared_ptr<const Generator> generator;
  };
  nb::class_<Held>(m, "Generator")
      .def("__init__",
           [](Held* self, const Model& model, unsigned threads, nb::handle options) {
             GeneratorOptions asked{.threads = threads};
             set_options(asked, OptionOf::generator, options);
             const WithoutGil released;
             auto made = std::make_shared<const Generator>(model, asked);
             new (self) Held{std::move(made)};
           })
      .def_prop_ro("vocabulary", [](const Held& h) { return h.generator->vocabulary(); })
      .def_prop_ro("context", [](const Held& h) { return h.generator->context(); })
      .def_prop_ro("threads", [](const Held& h) { return h.generator->threads(); })
      .def("begin",
           [](const Held& h, const std::string& prompt, nb::handle given) {
             GenerateOptions options;
             set_options(options, OptionOf::generate, given);
             // One step takes less time than a signal may wait; a prompt takes more.
             return run(Settings{}, [&](const Context& context) {
               Stream out{.generator = h.generator,
                          .session = std::make_unique<Session>(h.generator->session()),
                          .generation = nullptr};
               const auto proceed = [&](std::uint64_t done, std::uint64_t total) {
                 if (!context.progress(done, total)) throw Cancelled();
                 return true;
               };
               options.on_prompt = proceed;
               out.generation = std::make_unique<Generation>(out.session->begin(prompt, options));
               return out;
             });
           })
      .def("tokenize", [](const Held& h, std::string_view one,
                          bool bos) { return h.generator->tokenizer().encode(one, {.bos = bos}); })
      .def("detokenize",
           [](const Held& h, const std::vector<std::uint32_t>& ids) {
             const std::string out = h.generator->tokenizer().decode(ids);
             return nb::bytes(out.data(), out.size());
           })
      .def("perplexity", [](const Held& h, const std::string& one, const Settings& settings) {
        const Perplexity found =
            run(settings, [&](const Context& context) { return perplexity(*h.generator, one, context); });
        return nb::make_tuple(found.tokens, found.nll, found.perplexity);
      });
}

}  // namespace weighbridge::python
