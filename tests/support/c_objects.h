// SPDX-License-Identifier: Apache-2.0
// Objects of weighbridge/c.h that a test owns, what its errors say, and small files.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "weighbridge/c.h"

namespace weighbridge::test {

// What an error says. Kind 0: there was none.
struct Failed {
  int kind = 0;
  std::string rule{}, message{}, file{}, json{};
  std::optional<std::string> tensor{};
};
inline Failed failed(wb_error* error) {
  if (error == nullptr) return {};
  Failed out{wb_error_kind(error), wb_error_rule(error), wb_error_message(error), wb_error_file(error)};
  std::size_t length = 0;
  if (const char* const name = wb_error_tensor(error, &length)) out.tensor = std::string(name, length);
  char* json = nullptr;
  EXPECT_EQ(wb_error_json(error, &json), nullptr);
  out.json = json;
  wb_text_free(json);
  wb_error_free(error);
  return out;
}
inline void works(wb_error* error) {
  const Failed found = failed(error);
  EXPECT_EQ(found.kind, 0) << found.message;
}

// The text that `call` makes, or why there is none.
template <class Call> std::string text(Call&& call) {
  char* made = nullptr;
  if (const Failed found = failed(call(&made)); found.kind != 0) return found.rule;
  std::string out = made;
  wb_text_free(made);
  return out;
}

// An object of C, which the test frees.
template <class T> struct Owned {
  using Free = void (*)(T*);
  explicit Owned(Free freed) : free(freed) {}
  ~Owned() { free(it); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  operator T*() const { return it; }
  T* it = nullptr;
  Free free;
};
struct AModel : Owned<wb_model> {
  explicit AModel(const std::string& path) : Owned(wb_model_free) {
    works(wb_open(path.c_str(), nullptr, nullptr, &it));
  }
};
struct AJob : Owned<wb_job> {
  AJob() : Owned(wb_job_free) { works(wb_job_new(&it)); }
};
struct SomeOptions : Owned<wb_options> {
  SomeOptions(std::initializer_list<std::pair<const char*, const char*>> all) : Owned(wb_options_free) {
    works(wb_options_new(&it));
    for (const auto& [name, value] : all) works(wb_options_set(it, name, value));
  }
};
struct APlan : Owned<wb_plan> {
  APlan(const wb_model* model, const std::string& path, const wb_options* options = nullptr) : Owned(wb_plan_free) {
    works(wb_plan_new(model, path.c_str(), options, nullptr, &it));
  }
};

// A safetensors file: its header and its data.
inline std::string safetensors(std::string header, const std::string& data) {
  header.append((8 - header.size() % 8) % 8, ' ');
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return out + header + data;
}
inline std::string six_floats() {
  return safetensors(R"({"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", std::string(24, '\0'));
}

}  // namespace weighbridge::test
