// SPDX-License-Identifier: Apache-2.0
/// \file
/// All of the library but the chain of .slm models, which is a library of its own: weighbridge/chain.h. Owns nothing.
#pragma once
#include "weighbridge/block_type.h"
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/dtype.h"
#include "weighbridge/embed.h"
#include "weighbridge/error.h"
#include "weighbridge/extract.h"
#include "weighbridge/formats.h"
#include "weighbridge/generate.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/json_writer.h"
#include "weighbridge/khlnary.h"
#include "weighbridge/model.h"
#include "weighbridge/npy.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"
#include "weighbridge/place.h"
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

/// Tensor files: opened, proved, converted, and what runs on them.
namespace weighbridge {
/// Glyph modules: weighbridge/khlnary.h.
namespace khlnary {}
/// What is particular to .slm models: weighbridge/slm.h.
namespace slm {}
}  // namespace weighbridge
