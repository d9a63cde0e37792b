// SPDX-License-Identifier: Apache-2.0
// weighbridge/weighbridge.h: all of the library. Owns nothing.
#pragma once
#include "weighbridge/context.h"
#include "weighbridge/convert.h"
#include "weighbridge/dtype.h"
#include "weighbridge/error.h"
#include "weighbridge/formats.h"
#include "weighbridge/hash.h"
#include "weighbridge/json.h"
#include "weighbridge/model.h"
#include "weighbridge/open.h"
#include "weighbridge/output.h"
#include "weighbridge/source.h"
#include "weighbridge/stats.h"
#include "weighbridge/text.h"
#include "weighbridge/value.h"
#include "weighbridge/verify.h"
