// SPDX-License-Identifier: Apache-2.0
// Turns results and exceptions into values for JavaScript.
#include "answers.h"

#include <cmath>
#include <new>

#include "weighbridge/json.h"

namespace weighbridge::web {
namespace {

using emscripten::val;

std::string failure(std::string_view path, std::string_view kind, std::string rule, std::string message) {
  Finding finding;
  finding.rule = std::move(rule);
  finding.message = std::move(message);
  finding.kind = kind == "memory" ? Kind::limit : Kind::misuse;
  Report report;
  report.add(std::move(finding));
  return web::failure(path, kind, report);
}

std::string failure_now(std::string_view path) {
  try {
    throw;
  } catch (const Error& error) {
    Report report;
    report.add(error.finding());
    return web::failure(path, name(error.kind()), report);
  } catch (const Cancelled&) {
    return failure(path, "cancelled", "misuse/cancelled", "cancelled");
  } catch (const std::bad_alloc&) {
    return failure(path, "memory", "limit/address-space", "this needs more memory than the browser gives a page");
  } catch (const std::exception& error) {
    return failure(path, "internal", "misuse/internal", error.what());
  }
}

}  // namespace

std::string failure(std::string_view path, std::string_view kind, const Report& report) {
  return object([&](JsonWriter& out) {
    out.member("error", kind);
    add_failure_members(out, path, report);
  });
}

std::string object(const std::function<void(JsonWriter&)>& members) {
  JsonWriter out(JsonWriter::Style::shown);
  out.begin_object();
  members(out);
  out.end_object();
  return out.take();
}

std::string answer(std::string_view path, const std::function<std::string()>& work) {
  try {
    return work();
  } catch (...) {
    return failure_now(path);
  }
}

val answer_value(std::string_view path, const std::function<val()>& work) {
  try {
    return work();
  } catch (...) {
    return val(failure_now(path));
  }
}

void add_findings(JsonWriter& out, const Report& report) {
  out.key("findings").begin_array();
  for (const Finding& finding : report.findings()) out.raw(to_json(finding));
  out.end_array();
}

Context job_context() {
  Context context;
  context.executor = inline_executor();
  const val hook = val::module_property("onProgress");
  if (hook.typeOf().as<std::string>() == "function")
    context.progress = [hook](std::uint64_t done, std::uint64_t total) {
      return hook(static_cast<double>(done), static_cast<double>(total)).as<bool>();
    };
  return context;
}

void misuse(std::string message) {
  Finding finding;
  finding.rule = "misuse/call";
  finding.kind = Kind::misuse;
  finding.message = std::move(message);
  throw Error(std::move(finding));
}

std::uint64_t count_of(const char* name, double number, std::uint64_t maximum) {
  // Also rejects NaN.
  if (!(number >= 0 && number <= static_cast<double>(maximum) && number == std::floor(number)))
    misuse(std::string(name) + " must be a whole number from 0 to " + std::to_string(maximum) + ", not " +
           to_json(Value::real(number)));
  return static_cast<std::uint64_t>(number);
}

std::vector<std::string> option_texts(const val& options, std::string_view name) {
  const val given = options[std::string(name)];
  if (given.isUndefined() || given.isNull()) return {};
  if (given.isArray()) return emscripten::vecFromJSArray<std::string>(given);
  return {given.isString() ? given.as<std::string>() : given.call<std::string>("toString")};
}
std::uint64_t count_option(const val& options, const char* name, std::uint64_t otherwise, std::uint64_t maximum) {
  const val member = options[name];
  return member.isUndefined() || member.isNull() ? otherwise : count_of(name, member.as<double>(), maximum);
}

}  // namespace weighbridge::web
