// SPDX-License-Identifier: Apache-2.0
// The descriptors of hdf5 and keras for the registry, and the functions that they point to.
#pragma once
#include "core/reading/format.h"

namespace weighbridge::hdf5 {

extern const core::Format kHdf5, kKeras;

void read_h5(const Source&, const Context&, core::Findings&, core::Draft&);
void read_keras(const Source&, const Context&, core::Findings&, core::Draft&);
// Whether the file is the index of weights that Keras divided.
bool is_keras_index(const core::Probe&);
void read_keras_index(const core::ReadJob&, core::Draft&);
// Remarks that the file is one of those that an index beside it names.
void warn_keras_shard_alone(const Place&, const Context&, core::Findings&, core::Draft&);
void check_h5(const Model&, const Context&, core::Findings&);
void check_keras(const Model&, const Context&, core::Findings&);

// The corpora: at least one file for each rule. Defined in cases.cc, which only tests and fuzzers link.
std::vector<core::CorpusCase> hdf5_cases();
std::vector<core::CorpusCase> keras_cases();

}  // namespace weighbridge::hdf5
