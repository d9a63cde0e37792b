// SPDX-License-Identifier: Apache-2.0
// What functions of the core return: JSON text, for success and failure. Also the tables of objects that JavaScript
// holds by number. Owns the only place that catches exceptions; none may cross into JavaScript.
#pragma once
#include <emscripten/val.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weighbridge/context.h"
#include "weighbridge/error.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/options.h"

namespace weighbridge::web {

// The result of `work`, or {"error":KIND,"path":...,"format":...,"findings":[...]}; KIND is malformed,
// unsupported, limit, misuse, io, cancelled, memory or internal.
std::string answer(std::string_view path, const std::function<std::string()>& work);
// The same for work whose result is not text.
emscripten::val answer_value(std::string_view path, const std::function<emscripten::val()>& work);
std::string failure(std::string_view path, std::string_view kind, const Report&);

// A JSON object with the members that `members` writes.
std::string object(const std::function<void(JsonWriter&)>& members);
void add_findings(JsonWriter&, const Report&);

// A copy of numbers as a JavaScript array, because the core's memory moves when it grows.
template <class T> emscripten::val copied(std::span<const T> numbers) {
  return emscripten::val(emscripten::typed_memory_view(numbers.size(), numbers.data()))
      .template call<emscripten::val>("slice");
}

// One thread; the module's onProgress gets progress and can cancel.
Context job_context();

[[noreturn]] void misuse(std::string message);

// The largest number up to which JavaScript's numbers represent every integer.
inline constexpr std::uint64_t kMaxCount = (std::uint64_t{1} << 53) - 1;
// Converts a JavaScript number to a count. Throws misuse, with its name there, if it is not an integer from 0 to
// `maximum`.
std::uint64_t count_of(const char* name, double number, std::uint64_t maximum = kMaxCount);

// Objects that JavaScript holds by a number, from 1.
template <class T> class Table {
 public:
  std::uint64_t add(T item) {
    items_.emplace(++last_, std::make_unique<T>(std::move(item)));
    return static_cast<std::uint64_t>(last_);
  }
  T& get(int number) {
    const auto found = items_.find(number);
    if (found == items_.end()) misuse("there is nothing with the number " + std::to_string(number) + " any more");
    return *found->second;
  }
  void remove(int number) { items_.erase(number); }

 private:
  std::map<int, std::unique_ptr<T>> items_;
  int last_ = 0;
};

// The texts of an option, of a list or of one value. None if it is absent or undefined.
std::vector<std::string> option_texts(const emscripten::val& options, std::string_view name);
// Throws misuse, with its name there, if it is given and not an integer from 0 to `maximum`.
std::uint64_t count_option(const emscripten::val& options, const char* name, std::uint64_t otherwise,
                           std::uint64_t maximum = kMaxCount);

// The options of this kind that are given. Pairs, such as a name and its new name, are flat lists; throws misuse for an
// odd number of texts.
template <class Options> Options made(OptionOf kind, const emscripten::val& given) {
  Options out;
  for (const OptionInfo& option : options_of(kind)) {
    const std::vector<std::string> texts = option_texts(given, option.name);
    if constexpr (requires { out.add(option.name, option.name, option.name); })
      if (option.value.find('=') != option.value.npos) {
        if (texts.size() % 2 != 0) misuse(std::string(option.name) + " must be pairs");
        for (std::size_t i = 0; i < texts.size(); i += 2) out.add(option.name, texts[i], texts[i + 1]);
        continue;
      }
    for (const std::string& text : texts) set_option(out, option.name, text);
  }
  return out;
}

}  // namespace weighbridge::web
