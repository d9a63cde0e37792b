// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the records of the chain. The first byte of the input chooses the kind of record. The text of a parsed
// record must parse to the same lines, and its JSON must be valid.
#include <array>

#include "chain/admission.h"
#include "chain/promotion.h"
#include "chain/record.h"
#include "harness.h"
#include "wire/json_reader.h"

namespace weighbridge::fuzz {
namespace {

const chain::internal::Schema& schema(std::uint8_t choice) {
  using namespace chain::internal;
  static const std::array all = {&admission_schema(),    &cases_schema(),  &evaluation_schema(),  &smoke_gate_schema(),
                                 &quality_gate_schema(), &ledger_schema(), &minimodel_schema(),   &receipt_schema(),
                                 &selector_schema(),     &smoke_schema(),  &slm_manifest_schema()};
  return *all[choice % all.size()];
}

}  // namespace
}  // namespace weighbridge::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weighbridge;
  if (size == 0) return 0;
  const chain::internal::Schema& schema = fuzz::schema(data[0]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  chain::internal::begins_as(schema, bytes);
  try {
    const chain::internal::Record record = chain::internal::parse_record(schema, bytes);
    const chain::internal::Record again = chain::internal::parse_record(schema, record.text());
    fuzz::expect(again.lines() == record.lines(), "a record that is written reads as another");
    const std::string text = record.json();
    wire::JsonReader json(text, 4);
    fuzz::expect(json.skip_value() && json.finish(), "a record's JSON is none");
    for (const auto& [key, value] : record.lines())
      if (fuzz::is_planted() && value.find('~') != std::string::npos)
        fuzz::fail("planted bug: a sound record with a forbidden sign");
  } catch (const Error& error) {
    fuzz::expect_files_fault(error.finding());
    fuzz::expect(!error.finding().offset || *error.finding().offset <= bytes.size(), "an offset behind the record");
  }
  return 0;
}
