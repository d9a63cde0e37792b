// SPDX-License-Identifier: Apache-2.0
/// \file
/// Includes the whole library, except the chain of .slm models, which is a separate library (weighbridge/chain.h).
#pragma once
#include "weighbridge/block_type.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/delta.h"
#include "weighbridge/diff.h"
#include "weighbridge/doctor.h"
#include "weighbridge/dtype.h"
#include "weighbridge/embed.h"
#include "weighbridge/error.h"
#include "weighbridge/explain.h"
#include "weighbridge/extract.h"
#include "weighbridge/formats.h"
#include "weighbridge/generate.h"
#include "weighbridge/hash.h"
#include "weighbridge/join.h"
#include "weighbridge/json.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/khlnary.h"
#include "weighbridge/lora.h"
#include "weighbridge/manifest.h"
#include "weighbridge/model.h"
#include "weighbridge/npy.h"
#include "weighbridge/open.h"
#include "weighbridge/options.h"
#include "weighbridge/output.h"
#include "weighbridge/picture.h"
#include "weighbridge/place.h"
#include "weighbridge/policy.h"
#include "weighbridge/recover.h"
#include "weighbridge/scheme.h"
#include "weighbridge/share.h"
#include "weighbridge/slm.h"
#include "weighbridge/source.h"
#include "weighbridge/stats.h"
#include "weighbridge/text.h"
#include "weighbridge/texts.h"
#include "weighbridge/tokenize.h"
#include "weighbridge/value.h"
#include "weighbridge/verify.h"
#include "weighbridge/version.h"
#include "weighbridge/view.h"

/// Opens, verifies, converts and runs tensor files.
namespace weighbridge {
/// Glyph modules: weighbridge/khlnary.h.
namespace khlnary {}
/// What is specific to .slm models: weighbridge/slm.h.
namespace slm {}
}  // namespace weighbridge
