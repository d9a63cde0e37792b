// SPDX-License-Identifier: Apache-2.0
// Errors of the library as exceptions of weighbridge._errors, and jobs that a signal can stop.
#include <algorithm>

#include "core.h"

namespace weighbridge::python {

nb::str text(std::string_view bytes) {
  PyObject* const out = PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape");
  if (!out) throw nb::python_error();
  return nb::steal<nb::str>(out);
}

std::string shown(std::string_view text) {
  std::string out;
  for (;;) {
    const std::size_t at = std::min(text.find('\\'), text.size());
    out += escape_for_display(text.substr(0, at));
    if (at == text.size()) return out;
    out += '\\';
    text.remove_prefix(at + 1);
  }
}

void wrong_value(const std::string& message) { throw nb::value_error(shown(message).c_str()); }
DType dtype_of_name(std::string_view name) {
  const auto found = dtype_from_any_name(name);
  if (!found) wrong_value("no dtype '" + std::string(name) + "'");
  return *found;
}

nb::dict to_dict(const Finding& finding) {
  nb::dict out;
  out["rule"] = text(finding.rule);
  out["severity"] = text(name(finding.severity));
  out["kind"] = text(name(finding.kind));
  out["message"] = text(finding.message);
  out["file"] = finding.file.empty() ? nb::object(nb::none()) : nb::object(text(finding.file.name));
  out["offset"] = nb::cast(finding.offset);
  out["tensor"] = finding.has_tensor ? nb::object(text(finding.tensor)) : nb::object(nb::none());
  out["expected"] = text(finding.expected);
  out["found"] = text(finding.found);
  nb::object hint = nb::none();
  if (finding.hint.what != Hint::What::none) {
    nb::dict told;
    told["what"] = text(name(finding.hint.what));
    told["name"] = text(finding.hint.name);
    told["value"] = text(finding.hint.value);
    hint = told;
  }
  out["hint"] = hint;
  return out;
}
nb::list to_list(const Report& report) {
  nb::list out;
  for (const Finding& finding : report.findings()) out.append(to_dict(finding));
  return out;
}

namespace {

void raise(const Error& error) {
  const nb::object made =
      nb::module_::import_("weighbridge._errors").attr("make")(to_dict(error.finding()), text(error.what()));
  PyErr_SetObject(made.type().ptr(), made.ptr());
}

// What the waiting thread and the job share.
struct Watch {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false, stop = false;
  std::uint64_t at = 0, total = 0;
};

}  // namespace

void run_job(const Settings& settings, const std::function<void(const Context&)>& job) {
  Watch watch;
  std::exception_ptr failure;
  Context context{.limits = settings.limits,
                  .executor = settings.threads == 1 ? inline_executor() : thread_executor(settings.threads),
                  .progress = [&watch](std::uint64_t done, std::uint64_t total) {
                    const std::lock_guard lock(watch.mutex);
                    watch.at = done;
                    watch.total = total;
                    return !watch.stop;
                  }};
  std::exception_ptr stopped;
  {
    const WithoutGil released;
    std::thread worker([&] {
      try {
        job(context);
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(watch.mutex);
      watch.done = true;
      watch.changed.notify_all();
    });
    std::uint64_t reported = UINT64_MAX;
    for (;;) {
      std::uint64_t at, total;
      {
        std::unique_lock lock(watch.mutex);
        if (watch.changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return watch.done; })) break;
        at = watch.at;
        total = watch.total;
      }
      if (stopped) continue;
      const WithGil acquired;
      try {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!settings.progress.is_none() && at != reported) {
          reported = at;
          settings.progress(at, total);
        }
      } catch (...) {
        stopped = std::current_exception();
        const std::lock_guard lock(watch.mutex);
        watch.stop = true;
      }
    }
    worker.join();
  }
  if (stopped) std::rethrow_exception(stopped);
  if (failure) std::rethrow_exception(failure);
  if (!settings.progress.is_none()) settings.progress(watch.total, watch.total);
}

void wrong_type(std::string_view name, const char* what, nb::handle object) {
  const std::string type = nb::cast<std::string>(object.type().attr("__name__"));
  const auto ascii = nb::steal(PyObject_ASCII(object.ptr()));  // a str with surrogates too
  if (!ascii.is_valid()) PyErr_Clear();
  std::string value = ascii.is_valid() ? nb::cast<std::string>(ascii) : "?";
  if (value.size() > 60) value = value.substr(0, 60) + "...";
  throw nb::type_error(
      shown(std::string(name) + ": " + what + " is expected, not " + value + " (" + type + ")").c_str());
}

Settings to_settings(nb::handle limits, unsigned threads, nb::object progress) {
  Settings out{.limits = {}, .threads = threads, .progress = std::move(progress)};
  if (limits.is_none()) return out;
  for (auto [key, value] : nb::cast<nb::dict>(limits)) {
    const auto name = argument<std::string>("limits", key);
    set_limit(out.limits, name, argument<std::uint64_t>(name, value));
  }
  return out;
}

void define_errors(nb::module_& m) {
  // A str with what could control a terminal escaped; lone surrogates stand for bytes that are no UTF-8.
  m.def("shown", [](nb::handle given) {
    auto bytes = nb::steal(PyUnicode_AsEncodedString(given.ptr(), "utf-8", "surrogateescape"));
    if (!bytes.is_valid()) {
      PyErr_Clear();
      bytes = nb::steal(PyUnicode_AsEncodedString(given.ptr(), "utf-8", "backslashreplace"));
    }
    char* data = nullptr;
    Py_ssize_t size = 0;
    if (!bytes.is_valid() || PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
    return text(shown({data, static_cast<std::size_t>(size)}));
  });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&note_ending));
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    } catch (const Cancelled&) {
      PyErr_SetNone(PyExc_KeyboardInterrupt);
    }
  });
}

}  // namespace weighbridge::python
