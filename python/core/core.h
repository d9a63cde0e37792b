// SPDX-License-Identifier: Apache-2.0
// What the files of the extension module share. The module is thin: it hands over what the library's public headers
// have, and the Python package beside it has the names, habits and documentation that users see.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "gil.h"
#include "weighbridge/weighbridge.h"

namespace weighbridge::python {

namespace nb = nanobind;

// One function for each file, called by module.cc.
void define_arrow(nb::module_&);
void define_errors(nb::module_&);
void define_models(nb::module_&);
void define_jobs(nb::module_&);
void define_runtimes(nb::module_&);

// Gets the pages of new memory in one call, which takes half the time of a fault for each.
void populate(std::span<std::byte>) noexcept;
// Asks for pages of 2 MiB, at whose multiples the memory begins and ends. Both are hints (os_linux.cc).
void use_huge_pages(std::span<std::byte>) noexcept;

// A text of a file as str: bytes that are no UTF-8 become surrogates, as os.fsdecode() does.
nb::str text(std::string_view);
// A text of a file or of a caller for a message or a repr: what could control a terminal is escaped, as in the command,
// except that a backslash stays one.
std::string shown(std::string_view);
[[noreturn]] void wrong_value(const std::string& message);  // raises ValueError with it, shown
DType dtype_of_name(std::string_view);                      // raises ValueError for a text that names none
nb::object to_python(const Value&);
Value to_value(nb::handle);
nb::dict to_dict(std::span<const Value::Entry>);
nb::dict to_dict(const Finding&);
nb::list to_list(const Report&);

// Raises TypeError: `what` is expected for the argument `name`, not this object.
[[noreturn]] void wrong_type(std::string_view name, const char* what, nb::handle object);
// An argument as a C++ value, or TypeError.
template <class T> T argument(std::string_view name, nb::handle object) {
  T out{};
  if (nb::try_cast(object, out)) return out;
  constexpr bool kText = std::is_same_v<T, std::string>, kTruth = std::is_same_v<T, bool>;
  wrong_type(name,
             kText                   ? "a str of valid Unicode"
             : kTruth                ? "a bool"
             : std::is_unsigned_v<T> ? "an int of 0 or more that fits"
                                     : "another type",
             object);
}

// The text of an option for what Python gives: an int, a float, a bool, a str or a path, as the table of options says.
// Several, if the option may be repeated and a list is given. TypeError.
std::vector<std::string> option_texts(OptionOf, const std::string& name, nb::handle value);
// Sets each option of a dict, whose names have "_" in place of "-". None counts as absent. A dict is pairs, such as
// names and their new names.
template <class Options> void set_options(Options& to, OptionOf kind, nb::handle options) {
  for (auto [key, value] : nb::cast<nb::dict>(options)) {
    auto name = argument<std::string>("options", key);
    std::replace(name.begin(), name.end(), '_', '-');
    if constexpr (requires { to.add(name, name, name); })
      if (nb::isinstance<nb::dict>(value)) {
        for (auto [from, text] : nb::cast<nb::dict>(value))
          to.add(name, argument<std::string>(name, from), argument<std::string>(name, text));
        continue;
      }
    for (const std::string& each : option_texts(kind, name, value)) set_option(to, name, each);
  }
}
template <class Options> Options made(OptionOf kind, nb::handle options) {
  Options out;
  set_options(out, kind, options);
  return out;
}

// A path (str, bytes, os.PathLike), bytes or another buffer, or an object with ranges (_sources.py).
struct Input {
  std::string path;                      // empty: `source`
  std::shared_ptr<const Source> source;  // null: `path`
};
Input to_input(nb::handle);
// A path alone, also one whose bytes are no UTF-8.
std::string to_path(nb::handle);

// What a call takes from its caller: limits, threads and progress.
struct Settings {
  Limits limits;
  unsigned threads = 0;
  nb::object progress = nb::none();  // None, or called with (done, total)
};
Settings to_settings(nb::handle limits, unsigned threads, nb::object progress);

// Runs job(Context) in another thread without the GIL. This thread waits, looks for signals twenty times a second, and
// reports progress. An exception of a signal's handler or of the progress hook stops the job and is raised.
void run_job(const Settings&, const std::function<void(const Context&)>& job);
template <class Job> auto run(const Settings& settings, Job job) {
  std::optional<std::invoke_result_t<Job, const Context&>> result;
  run_job(settings, [&](const Context& context) { result.emplace(job(context)); });
  return std::move(*result);
}

// Writes the vector of text i at out[i * dimension()]. Progress counts texts. Texts of similar length are computed
// together, so their order has no effect on speed.
std::vector<Embedded> embed_texts(const Embedder&, std::span<const std::string_view> texts,
                                  std::optional<std::string_view> prompt, std::span<float> out, const Settings&);

}  // namespace weighbridge::python
